package mapping

import (
	"quittance/checkout"
	"quittance/schemas/record"
)

func fromItems(items []checkout.Item) []record.Item {
	if len(items) == 0 {
		return nil
	}
	out := make([]record.Item, len(items))
	for i, item := range items {
		out[i] = record.Item{
			ERPDueRef: item.ERPDueRef, SubjectRef: item.SubjectRef, Label: item.Label, ServiceCode: item.ServiceCode, ServiceLabel: item.ServiceLabel,
			Amount: item.Amount, Outstanding: item.Outstanding, Fee: item.Fee, TransactionID: item.TransactionID, NoticeID: item.NoticeID, NoticeRef: item.NoticeRef,
			Confirmation: fromConfirmation(item.Confirmation),
		}
	}
	return out
}

func toItems(items []record.Item) []checkout.Item {
	if len(items) == 0 {
		return nil
	}
	out := make([]checkout.Item, len(items))
	for i, item := range items {
		out[i] = checkout.Item{
			ERPDueRef: item.ERPDueRef, SubjectRef: item.SubjectRef, Label: item.Label, ServiceCode: item.ServiceCode, ServiceLabel: item.ServiceLabel,
			Amount: item.Amount, Outstanding: item.Outstanding, Fee: item.Fee, TransactionID: item.TransactionID, NoticeID: item.NoticeID, NoticeRef: item.NoticeRef,
			Confirmation: toConfirmation(item.Confirmation),
		}
	}
	return out
}

func fromConfirmation(c checkout.Confirmation) *record.Confirmation {
	if c.Status == "" {
		return nil
	}
	return &record.Confirmation{Status: string(c.Status), Since: c.Since, AnsweredAt: c.AnsweredAt, SettledAt: c.SettledAt, Reference: c.Reference, Again: c.Again}
}

func toConfirmation(r *record.Confirmation) checkout.Confirmation {
	if r == nil {
		return checkout.Confirmation{}
	}
	return checkout.Confirmation{
		Status: checkout.ConfirmationStatus(r.Status), Since: r.Since, AnsweredAt: r.AnsweredAt, SettledAt: r.SettledAt, Reference: r.Reference, Again: r.Again,
	}
}
