import Logging
import SluiceCore
import SluicePipeline
import SluicePorts
import SluicePostgres
import Synchronization

/// Keeps the size bounds of rows at the topics' limits, and warns about topics below the gateway's needs.
final class RecordBoundWatch: Sendable {
    private struct State {
        /// The largest record by topic, in bytes, as last read from the brokers.
        var known: [String: Int] = [:]
        /// The largest record by topic, in bytes, as learned from a rejection below the configured limit.
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

    /// Reads the bounds every minute, as an operator may change a topic at any time.
    func run() async throws {
        while true {
            try await environment.sleep(nanoseconds: Self.pause)
            await look()
        }
    }

    /// Reads the bounds of all change topics. An error becomes a readiness warning.
    func look() async {
        let types = Partitioning.readable(schema.current().schema).map(\.name)
        do {
            let found = try await log.recordBounds(of: types.map(topics.changes(of:)))
            for type in types { apply(found[topics.changes(of: type)], to: type) }
            let small = found.filter { $0.value < RowBound.neededRecordBytes }.sorted { $0.key < $1.key }
            note(small.isEmpty ? nil : Self.text(small.map { "\($0.key) accepts records of \($0.value) bytes" }))
        } catch {
            note("The topics' max.message.bytes cannot be read, so \(RowBound.neededRecordBytes) bytes are assumed: \(error)")
        }
    }

    private static func text(_ topics: [String]) -> String {
        let named = topics.prefix(10).joined(separator: ", ") + (topics.count > 10 ? ", and \(topics.count - 10) more" : "")
        return "\(named). Set max.message.bytes to \(RowBound.neededRecordBytes) or more. Until then larger objects are rejected."
    }

    private func apply(_ bytes: Int?, to type: String) {
        let topic = topics.changes(of: type)
        let effective = state.withLock { state in
            // A changed setting outweighs a rejection from before.
            if state.known[topic] != bytes { state.learned[topic] = nil }
            state.known[topic] = bytes
            return [bytes, state.learned[topic]].compactMap(\.self).min()
        }
        if let effective { bounds[type].set(recordBytes: effective) }
    }

    /// Lowers the bound of a class below a record of `bytes` bytes that its topic rejected.
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
        if isNew, let text { logger.warning("Topics accept smaller records than the gateway needs.", metadata: ["note": "\(text)"]) }
    }
}
