package acceptance_test

// webhookKinds are the events that an endpoint may ask for. They are spelt out here
// on purpose.
var webhookKinds = []string{"checkout.completed", "checkout.failed", "checkout.cancelled", "checkout.expired", "checkout.late_payment"}
