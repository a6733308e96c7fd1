package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/CycloneDX/cyclonedx-go" // the form of a list of components, by the people who define it
	"github.com/google/uuid"
)

// bom writes the list of the modules in the program (CycloneDX, JSON). Its serial number follows from the commit.
func (r *release) bom(context.Context) error {
	b := cyclonedx.NewBOM()
	b.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte("quittance "+r.version)).URN()
	b.Metadata = &cyclonedx.Metadata{
		Timestamp: r.at.Format("2006-01-02T15:04:05Z"),
		Component: &cyclonedx.Component{BOMRef: "quittance", Type: cyclonedx.ComponentTypeApplication, Name: "quittance", Version: r.version},
	}
	list := []cyclonedx.Component{{
		BOMRef: "go", Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(r.info.GoVersion, "go"), PackageURL: "pkg:golang/std@" + strings.TrimPrefix(r.info.GoVersion, "go"),
	}}
	for _, m := range r.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		list = append(list, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url})
	}
	b.Components = &list
	f, err := os.Create(r.path("-sbom.cdx.json"))
	if err != nil {
		return err
	}
	return errors.Join(cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(b), f.Close())
}
