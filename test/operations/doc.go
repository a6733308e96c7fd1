// Package operations is what people do beside paying: TestMainJob what a newcomer
// does first, TestListen and TestOperatingDeliveries what an integrator and an
// operator type, TestMonitoring what dashboards and alerts rely on, TestQuota what a
// flood of creations is granted. QUITTANCE_SHOTS names a folder that keeps pictures
// of TestMainJob's pages.
package operations
