"""Munjang's models in the shape that other libraries ask for; one file per library, imported only by who uses that library."""
