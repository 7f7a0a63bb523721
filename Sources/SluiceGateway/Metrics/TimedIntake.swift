import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceTracing
import Tracing

/// An intake that measures the time until objects are acknowledged, and records a span for each batch.
struct TimedIntake: IngestIntake {
    private let intake: any IngestIntake
    private let seconds: MetricHistogram
    private let environment: any Environment
    private let tracer: SpanTracer?

    init(_ intake: any IngestIntake, metrics: Metrics, environment: any Environment, tracer: SpanTracer? = nil) {
        self.intake = intake
        self.tracer = tracer
        self.environment = environment
        seconds = metrics.histogram(.ingestSeconds)
    }

    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] {
        let begin = environment.monotonicNanoseconds()
        let refused = try await traced(objects.count) { try await intake.submit(objects, from: sender, permissions: permissions) }
        seconds.observe(nanoseconds: environment.monotonicNanoseconds() - begin)
        return refused
    }

    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {
        try await intake.keep(refused, from: sender, schema: schema)
    }

    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        let begin = environment.monotonicNanoseconds()
        let places = try await traced(records.count) { try await intake.submit(records, type: type, schema: schema, rights: rights) }
        seconds.observe(nanoseconds: environment.monotonicNanoseconds() - begin)
        return places
    }

    private func traced<Outcome>(_ objects: Int, _ body: () async throws -> Outcome) async throws -> Outcome {
        guard let tracer else { return try await body() }
        let span = tracer.startSpan("sluice.ingest", ofKind: .server)
        span.attributes = ["sluice.objects": SpanAttribute.int64(Int64(objects))]
        return try await span.within(body)
    }
}
