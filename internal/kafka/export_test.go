package kafka

// WarningOf is Warning for features that the broker of the tests does not have.
var WarningOf = warningOf
