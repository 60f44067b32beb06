"""Tasks, metrics, baselines and reports that show how well Prunus keeps the evidence."""
