"""The reference of the documentation, made from the code: commands, Python names, HTTP, recipes, file formats."""
