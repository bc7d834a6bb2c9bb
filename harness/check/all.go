package check

// All returns the built-in checks in the order of reports. The list is new at each call.
func All() []Check {
	return []Check{
		effectsOnce,
		effectsNoPhantom,
		attemptsBounded,
		attemptsPermanentOnce,
		attemptsUnsafeNotRepeated,
		keyStable,
		bodyIntact,
		timingRetryAfter,
		timingBackoffGrows,
		timingSpread,
		timingDeadline,
		timingCancel,
		errorLastReal,
		livenessRecovers,
		loadAmplification,
		resourcesReleased,
	}
}
