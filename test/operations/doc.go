// Package operations tests what people do beside paying. TestMainJob follows a newcomer's
// first steps. TestListen and TestOperatingDeliveries run the commands of an integrator
// and of an operator. TestMonitoring checks the metrics of dashboards and alerts,
// TestQuota the quota under a flood of creations. QUITTANCE_SHOTS names a folder that
// keeps pictures of TestMainJob's pages.
package operations
