"""What would have been: a recorded history replayed through the service's own forecaster and rules."""
