package bank

import "encoding/xml"

// The structs have the elements of pain.001.001.03 and .09 that we write, in the order of the schemas. Where the versions
// differ both forms are there, and one is empty.

type document struct {
	XMLName xml.Name `xml:"Document"`
	Space   string   `xml:"xmlns,attr"`
	Request request  `xml:"CstmrCdtTrfInitn"`
}

type request struct {
	Header header  `xml:"GrpHdr"`
	Groups []group `xml:"PmtInf"`
}

type header struct {
	ID        string    `xml:"MsgId"`
	CreatedAt string    `xml:"CreDtTm"`
	Count     int       `xml:"NbOfTxs"`
	Sum       string    `xml:"CtrlSum"`
	Initiator initiator `xml:"InitgPty"`
}

type initiator struct {
	Name   string `xml:"Nm"`
	Client *other `xml:"Id>OrgId>Othr,omitempty"`
}

type other struct {
	ID string `xml:"Id"`
}

type group struct {
	ID       string   `xml:"PmtInfId"`
	Method   string   `xml:"PmtMtd"`
	OneDebit bool     `xml:"BtchBookg"`
	Count    int      `xml:"NbOfTxs"`
	Sum      string   `xml:"CtrlSum"`
	Service  string   `xml:"PmtTpInf>SvcLvl>Cd"`
	System   string   `xml:"PmtTpInf>LclInstrm>Prtry"`
	Day      day      `xml:"ReqdExctnDt"`
	Debtor   string   `xml:"Dbtr>Nm"`
	Account  account  `xml:"DbtrAcct"`
	Agent    agent    `xml:"DbtrAgt>FinInstnId"`
	Charges  string   `xml:"ChrgBr"`
	Transfer []credit `xml:"CdtTrfTxInf"`
}

// day is a date in .03, and a choice of date and time in .09.
type day struct {
	Plain string `xml:",chardata"`
	Date  string `xml:"Dt,omitempty"`
}

type account struct {
	ID       accountID `xml:"Id"`
	Currency string    `xml:"Ccy,omitempty"`
}

// accountID is one of both.
type accountID struct {
	IBAN  string `xml:"IBAN,omitempty"`
	Other *other `xml:"Othr,omitempty"`
}

// agent is a bank: BICFI in .09, BIC in .03, or its number in the clearing.
type agent struct {
	BICFI  string  `xml:"BICFI,omitempty"`
	BIC    string  `xml:"BIC,omitempty"`
	Member *member `xml:"ClrSysMmbId,omitempty"`
}

type member struct {
	ID string `xml:"MmbId"`
}

type credit struct {
	Instruction string      `xml:"PmtId>InstrId"`
	EndToEnd    string      `xml:"PmtId>EndToEndId"`
	Amount      amount      `xml:"Amt>InstdAmt"`
	Agent       agent       `xml:"CdtrAgt>FinInstnId"`
	Creditor    string      `xml:"Cdtr>Nm"`
	Account     account     `xml:"CdtrAcct"`
	Purpose     *remittance `xml:"RmtInf,omitempty"`
}

type remittance struct {
	Text string `xml:"Ustrd"`
}

type amount struct {
	Currency string `xml:"Ccy,attr"`
	Value    string `xml:",chardata"`
}
