package acceptance_test

import "time"

// How long a client goes on trying, and how long one of its requests waits for an
// answer.
const (
	journeyPatience = 2 * time.Minute
	requestPatience = 8 * time.Second
)
