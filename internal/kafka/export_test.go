package kafka

// WarningOf is Warning for features that the tests' broker does not have.
var WarningOf = warningOf
