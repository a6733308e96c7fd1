// Package tills holds the tills of agencies' counters: the cash of a clerk from an opening to
// a closing.
//
// A clerk opens a till with the cash that is in it, and closes it with a count. The closing
// sums up what the clerk took and gave back, whether on the page or through desk software:
// every movement of cash (internal/sessions) of the clerk in the mode that no earlier till
// counts, from the local day of the clerk's first till on. A movement that is on record too
// late for a closing, because the service did not answer in time, counts in the next till. So
// each movement counts once, whatever the clocks of the instances say. The closing waits
// until the read model has everything that was acknowledged.
//
// A restitution counts in the till of the clerk who recorded it. The report names the clerk
// who had taken the cash.
//
// The clerk may correct the count until another clerk of the agency has signed it. The
// signing clerk counts too, and the sums must agree; the signature covers the count and the
// note that the clerk saw. The movements of a closed till never
// change. Each step is in the audit table.
package tills
