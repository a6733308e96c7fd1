package checkout

// Apply lets tests check that a decision is the fold of its events.
var Apply = apply

// OrderKeyOf lets tests find the order of a session.
var OrderKeyOf = Session.orderKey
