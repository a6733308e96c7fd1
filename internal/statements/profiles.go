package statements

import (
	"time"

	"quittance/statement"
)

// layouts are the built-in profiles of delimited text.
var layouts = map[string]*Layout{
	// mtn is the report of the transactions of an account that collects or pays, with a running balance.
	"mtn": {
		Name: "mtn", Separators: ",;\t", Width: 11,
		Header: []string{"Id", "External id", "Status", "Type", "Date", "Amount", "Fee", "Currency", "", "To", "Balance"},
		ID:     []int{1}, Reference: 2, Status: 3, Type: 4, Time: 5, Amount: 6, Fee: 7, Currency: 8, Counterparty: 9, Account: 10, Balance: 11,
		Booked: []string{"Successful"}, NotBooked: []string{"Failed"}, Pending: []string{"Pending"},
		Types:       map[string]statement.Kind{"Payment": statement.KindPayment, "Refund": statement.KindRefund, "Reversal": statement.KindReversal, "Cash out": statement.KindPayout, "Fee": statement.KindCharge, "Deposit": statement.KindPayment, "Transfer": statement.KindTransfer, "Transfer return": statement.KindReturn},
		TimeFormats: []string{"2006-01-02 15:04:05", time.RFC3339}, Zone: brazzaville, Decimal: ".", Group: " ",
	},
	// airtel is the report of an account that collects or pays, without balances.
	"airtel": {
		Name: "airtel", Separators: ",;\t", Width: 11,
		Header: []string{"Transaction ID", "Reference", "Service", "Status", "Date", "Amount", "Charges", "Currency", "", "Merchant", "Settlement"},
		ID:     []int{1}, Reference: 2, Type: 3, Status: 4, Time: 5, Amount: 6, Fee: 7, Currency: 8, Counterparty: 9, Account: 10, Batch: 11,
		Booked: []string{"Transaction Success", "TS"}, NotBooked: []string{"Transaction Failed", "TF"}, Pending: []string{"Transaction in Progress", "TIP"},
		Types:       map[string]statement.Kind{"Collection": statement.KindPayment, "Refund": statement.KindRefund, "Reversal": statement.KindReversal, "Settlement": statement.KindPayout, "Charge": statement.KindCharge, "Deposit": statement.KindPayment, "Disbursement": statement.KindTransfer, "Disbursement Return": statement.KindReturn},
		TimeFormats: []string{"02/01/2006 15:04:05", "02/01/2006 15:04"}, Zone: brazzaville, Decimal: ".", Group: " ,",
	},
	// card-settlement is an acquirer's settlement in batches, with a row of totals.
	"card-settlement": {
		Name: "card-settlement", Separators: ";,", Width: 9,
		Header: []string{"Batch", "Transaction", "Reference", "Type", "Time", "Gross", "Fee", "Net", "Currency"},
		ID:     []int{2}, Reference: 3, Type: 4, Time: 5, Amount: 6, Fee: 7, Net: 8, Currency: 9, Batch: 1,
		Types:       map[string]statement.Kind{"Sale": statement.KindPayment, "Refund": statement.KindRefund, "Chargeback": statement.KindReversal, "Fee": statement.KindCharge},
		TimeFormats: []string{time.RFC3339}, Decimal: ".",
		Trailer: "TOTAL", TrailerCount: 2,
	},
	// cash-slip lists the receipts that each deposit slip pays in.
	"cash-slip": {
		Name: "cash-slip", Separators: ";,", Width: 7,
		Header: []string{"Slip", "Receipt", "Reference", "Type", "Time", "Amount", "Currency"},
		ID:     []int{2}, Reference: 3, Type: 4, Time: 5, Amount: 6, Currency: 7, Batch: 1,
		Types:       map[string]statement.Kind{"Receipt": statement.KindPayment, "Refund": statement.KindRefund},
		TimeFormats: []string{time.RFC3339, "2006-01-02 15:04"}, Decimal: ",", Group: " .\u00a0\u202f",
		Trailer: "TOTAL", TrailerCount: 2,
	},
}
