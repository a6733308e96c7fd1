// Package erpquery carries questions to the agencies' ERPs over Kafka, so that only `sink erp` holds their credentials
// (docs/design/citizen.md, "Who asks the ERP").
//
// A role that shows dues asks with a [Client]. The sink opens questions and makes the records of answers with a
// [Protocol]. Question and answer have personal data: both are sealed for their correlation id and their direction, so
// that a record that was moved or turned round does not open. The answer is the body as the ERP sent it; the asker
// checks it (erp.ReadDues).
package erpquery
