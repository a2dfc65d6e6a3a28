"""Scores with confidence: metrics, one file per task, comparison, calibration, lint."""
