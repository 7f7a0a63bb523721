import SluiceCore
import SluicePipeline
import SluicePorts

/// An intake that measures the time until objects are acknowledged.
struct TimedIntake: IngestIntake {
    private let intake: any IngestIntake
    private let seconds: MetricHistogram
    private let environment: any Environment

    init(_ intake: any IngestIntake, metrics: Metrics, environment: any Environment) {
        self.intake = intake
        self.environment = environment
        seconds = metrics.histogram(.ingestSeconds)
    }

    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection] {
        let begin = environment.monotonicNanoseconds()
        let refused = try await intake.submit(objects, from: sender, permissions: permissions)
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
        let places = try await intake.submit(records, type: type, schema: schema, rights: rights)
        seconds.observe(nanoseconds: environment.monotonicNanoseconds() - begin)
        return places
    }
}
