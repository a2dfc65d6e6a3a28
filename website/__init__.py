"""What makes the documentation: its pages as something to run, the reference from the code, the site."""
