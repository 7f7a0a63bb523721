import Logging
import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// Keeps the bounds of rows at what the topics take, and names the topics that take less than the gateway needs.
final class RecordBoundWatch: Sendable {
    private struct State {
        /// Bytes of the largest record, by topic, as the brokers said last.
        var known: [String: Int] = [:]
        /// Bytes below which a record was refused although the brokers' settings allow it, by topic.
        var learned: [String: Int] = [:]
        var note: String?
    }

    private static let part = "record size"
    private static let pause: UInt64 = 60_000_000_000

    private let log: any MessageLog
    private let topics: Topics
    private let schema: GatewaySchema
    private let bounds: RowBounds
    private let readiness: Readiness
    private let environment: any Environment
    private let logger: Logger
    private let state = Mutex(State())

    init(
        log: any MessageLog, topics: Topics, schema: GatewaySchema, bounds: RowBounds, readiness: Readiness,
        environment: any Environment, logger: Logger
    ) {
        self.log = log
        self.topics = topics
        self.schema = schema
        self.bounds = bounds
        self.readiness = readiness
        self.environment = environment
        self.logger = logger
    }

    /// Looks each minute: an operator may change a topic while the gateway runs.
    func run() async throws {
        while true {
            try await environment.sleep(nanoseconds: Self.pause)
            await look()
        }
    }

    /// Reads the bounds of all change topics.
    func look() async {
        let types = Partitioning.readable(schema.current().schema).map(\.name)
        do {
            let found = try await log.recordBounds(of: types.map(topics.changes(of:)))
            for type in types { apply(found[topics.changes(of: type)], to: type) }
            let small = found.filter { $0.value < RowBound.neededRecordBytes }.sorted { $0.key < $1.key }
            note(small.isEmpty ? nil : Self.text(small.map { "\($0.key) takes records of \($0.value) bytes" }))
        } catch {
            note("The topics' max.message.bytes cannot be read, so \(RowBound.neededRecordBytes) bytes are assumed: \(error)")
        }
    }

    private static func text(_ topics: [String]) -> String {
        let named = topics.prefix(10).joined(separator: ", ") + (topics.count > 10 ? ", and \(topics.count - 10) more" : "")
        return "\(named). Set max.message.bytes to \(RowBound.neededRecordBytes) or more: until then smaller objects are refused."
    }

    private func apply(_ bytes: Int?, to type: String) {
        let topic = topics.changes(of: type)
        let effective = state.withLock { state in
            // A changed setting says more than a refusal from before.
            if state.known[topic] != bytes { state.learned[topic] = nil }
            state.known[topic] = bytes
            return [bytes, state.learned[topic]].compactMap(\.self).min()
        }
        if let effective { bounds[type].set(recordBytes: effective) }
    }

    /// Takes it that a topic takes only smaller records than one that it refused.
    func refused(type: String, bytes: Int) {
        let topic = topics.changes(of: type)
        let effective = state.withLock { state in
            let learned = min(state.learned[topic] ?? .max, bytes - 1)
            state.learned[topic] = learned
            return min(learned, state.known[topic] ?? .max)
        }
        bounds[type].set(recordBytes: effective)
    }

    private func note(_ text: String?) {
        let isNew = state.withLock { state in
            defer { state.note = text }
            return state.note != text
        }
        readiness.warn(Self.part, text)
        if isNew, let text { logger.warning("Topics take smaller records than the gateway needs.", metadata: ["note": "\(text)"]) }
    }
}
