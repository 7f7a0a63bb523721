import SluiceCore
import SluicePorts
import SluiceTracing
import Tracing

/// Records the metrics of sessions.
struct SessionWatch: SessionObserver {
    /// The bytes passed to client connections.
    let egress: MetricNumber
    let started: MetricNumber
    let ended: MetricNumber
    private let metrics: Metrics
    private let environment: any Environment
    private let tracer: SpanTracer?
    private let applied: MetricNumber
    private let partly: MetricNumber
    private let repeated: MetricNumber
    private let uploads: MetricHistogram
    private let compensatingWrites: MetricNumber
    private let bootstraps: MetricNumber
    private let bootstrapSeconds: MetricHistogram
    private let bootstrapRows: MetricNumber
    private let subscriptions: MetricNumber
    private let changes: MetricNumber
    private let deliveries: MetricHistogram

    init(metrics: Metrics, environment: any Environment, tracer: SpanTracer? = nil) {
        self.metrics = metrics
        self.tracer = tracer
        self.environment = environment
        egress = metrics.number(.egressBytes)
        started = metrics.number(.sessionsStarted)
        ended = metrics.number(.sessionsEnded)
        applied = metrics.number(.uploads, label: "applied")
        partly = metrics.number(.uploads, label: "compensated")
        repeated = metrics.number(.uploads, label: "repeated")
        uploads = metrics.histogram(.uploadSeconds)
        compensatingWrites = metrics.number(.compensatingWrites)
        bootstraps = metrics.number(.bootstraps)
        bootstrapSeconds = metrics.histogram(.bootstrapSeconds)
        bootstrapRows = metrics.number(.bootstrapRows)
        subscriptions = metrics.number(.subscriptions)
        changes = metrics.number(.deliveredChanges)
        deliveries = metrics.histogram(.deliverySeconds)
    }

    func failed(_ code: ErrorCode) { metrics.number(.sessionErrors, label: code.name).add() }

    func uploaded(undone: Int, nanoseconds: UInt64?) {
        guard let nanoseconds else { return repeated.add() }
        (undone > 0 ? partly : applied).add()
        compensatingWrites.add(undone)
        uploads.observe(nanoseconds: nanoseconds)
    }

    func bootstrapBegan() { bootstraps.add() }

    func bootstrapped(rows: UInt64, nanoseconds: UInt64) {
        bootstrapRows.add(Double(rows))
        bootstrapSeconds.observe(nanoseconds: nanoseconds)
        tracer?.record(
            "sluice.bootstrap", ofKind: .server, nanoseconds: nanoseconds,
            attributes: ["sluice.rows": SpanAttribute.int64(Int64(clamping: rows))])
    }

    func subscribed(_ change: Int) { subscriptions.add(change) }

    func delivered(changes: Int, commitTime: Int64) {
        self.changes.add(changes)
        // Clamped at zero: PostgreSQL's clock may be ahead of this machine's.
        deliveries.observe(seconds: max(Double(environment.wallMilliseconds()) / 1e3 - Double(commitTime) / 1e6, 0))
    }
}
