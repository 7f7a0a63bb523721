import SluiceCore
import SluiceRealm

/// Records the metrics of sessions of Realm's protocol, by SDK.
struct RealmWatch: Sendable {
    private let metrics: Metrics

    init(metrics: Metrics) { self.metrics = metrics }

    /// Counts a client that was refused because it asks for partition-based sync.
    func refusedPartitions(_ agent: RealmAgent) { metrics.number(.realmPartitionRefusals, label: agent.sdk.rawValue).add() }

    /// Counts the end of a connection, or a refused upgrade.
    func ended(_ end: RealmSocketEnd) { metrics.number(.realmCloses, label: end.rawValue).add() }

    /// Returns the observer of a client's connection.
    func observer(of agent: RealmAgent) -> any RealmConnectionObserver { Observer(metrics, agent.sdk.rawValue) }

    private struct Observer: RealmConnectionObserver {
        private let metrics: Metrics
        private let sessions: MetricNumber
        private let received: MetricNumber
        private let sent: MetricNumber
        private let uploads: MetricNumber
        private let rejected: MetricNumber
        private let defects: MetricNumber
        private let clientFailures: MetricNumber

        init(_ metrics: Metrics, _ sdk: String) {
            self.metrics = metrics
            sessions = metrics.number(.realmSessions, label: sdk)
            received = metrics.number(.realmReceivedBytes, label: sdk)
            sent = metrics.number(.realmSentBytes, label: sdk)
            uploads = metrics.number(.realmUploads, label: sdk)
            rejected = metrics.number(.realmCompensatingWrites, label: sdk)
            defects = metrics.number(.realmDefects, label: sdk)
            clientFailures = metrics.number(.realmClientFailures, label: sdk)
        }

        func sessions(_ change: Int) { sessions.add(change) }
        func received(bytes: Int) { received.add(bytes) }
        func sent(bytes: Int) { sent.add(bytes) }
        func failed(_ code: RealmErrorCode) { metrics.number(.realmErrors, label: "\(code)").add() }
        func integrated(rejected: Int) {
            uploads.add()
            self.rejected.add(rejected)
        }
        func defect() { defects.add() }
        func clientFailed() { clientFailures.add() }
    }
}
