"""Evaluations of Prunus: tasks, metrics, baselines, reports and the quality gate."""
