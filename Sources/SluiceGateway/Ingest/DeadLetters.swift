package import Logging
package import SluiceCore
import SluicePipeline
package import SluicePorts
package import SluicePostgres
import SluiceValues

extension DeadLetter {
    /// The form in the dead-letter topic and the admin API. `bytes` is hexadecimal and present only if the text cannot hold them.
    var json: JSON {
        var members: [JSON.Member] = [
            JSON.Member("id", .int(id)), JSON.Member("type", .string(type)), JSON.Member("source", .string(source)),
            JSON.Member("offset", offset.map { .int($0) } ?? .null), JSON.Member("code", .int(Int64(code))),
            JSON.Member("reason", .string(reason)), JSON.Member("object", .string(object)), JSON.Member("at", .string(at)),
        ]
        if let bytes { members.append(JSON.Member("bytes", .string(Hex.encode(bytes)))) }
        if isCut { members.append(JSON.Member("cut", .bool(true))) }
        return .object(members)
    }

    /// The form in the dead-letter topic, of at most `most` bytes of UTF-8. A larger letter loses its bytes and the end of its object.
    func told(within most: Int = Limits.deadLetterBytes) -> JSON {
        var letter = self
        var told = json
        // Type, source and reason may be client text of any length. The sizes shrink as JSON escapes can lengthen the text.
        for size in [most / 2, most / 8, most / 64, 0] where told.utf8.count > most {
            letter.isCut = true
            letter.bytes = nil
            letter.object = String(letter.object.unicodeScalars.prefix(size))
            letter.reason = String(letter.reason.unicodeScalars.prefix(2_000))
            letter.type = String(letter.type.unicodeScalars.prefix(Self.nameCharacters))
            told = letter.json
        }
        return told
    }

    /// The maximum length of a class name, in Unicode scalars. A client may have chosen the name.
    static let nameCharacters = 200
}

/// Publishes every rejected object to the dead-letter topic `<app>.ingest-rejected`, once and normally within a second.
///
/// The gateways take turns; one publishes at a time. It selects rows that the table lists as unpublished, so a crash loses none. A new
/// turn first waits until no append of the previous turn can still arrive. It then reads the end of the topic, as a crash may have hidden
/// published letters from the table.
package struct DeadLetterRelay: Sendable {
    /// The maximum number of letters of one batch.
    private static let batch = 500
    /// The size at which a batch ends, in bytes of objects.
    private static let batchBytes = 8 << 20
    /// The smallest record size, in bytes, to which a letter is cut. A topic that rejects it receives no letters.
    private static let leastBytes = 10_000
    /// The time limit for reading the end of the topic, in nanoseconds.
    private static let patience: UInt64 = 30_000_000_000

    private let letters: DeadLetterStore
    private let log: any MessageLog
    private let topic: String
    private let longestAppend: Duration
    private let claim: @Sendable () async throws -> Bool
    private let environment: any Environment
    private let logger: Logger

    /// - Parameters:
    ///   - longestAppend: The longest time from the start of an append until the log can no longer add its records.
    ///   - claim: Returns `true` if this gateway may probably publish. The relay calls it once a second.
    package init(
        letters: DeadLetterStore, log: any MessageLog, topic: String, longestAppend: Duration, environment: any Environment, logger: Logger,
        claim: @escaping @Sendable () async throws -> Bool
    ) {
        self.letters = letters
        self.log = log
        self.topic = topic
        self.longestAppend = longestAppend
        self.claim = claim
        self.environment = environment
        self.logger = logger
    }

    package func run() async throws {
        var isPrepared = false
        var turn: DeadLetterStore.Turn?
        var pause: UInt64 = 1_000
        while !Task.isCancelled {
            do {
                if !isPrepared { _ = try await log.prepare([TopicSpec(name: topic, partitions: 1)]) }
                isPrepared = true
                // The turn survives this pass only if it completes. After an error the relay takes a new turn and reads the topic again.
                let before = turn
                turn = nil
                if try await claim() {
                    // `claim` may be out of date. The turn's number is the fence: `begin` fails once another gateway has a later one.
                    let mine = if let before { before } else { try await takeOver() }
                    if try await relay(mine) { turn = mine }
                }
                pause = 1_000
            } catch is CancellationError {
                break
            } catch {
                logger.warning("The dead-letter topic could not be written. The gateway tries again.", metadata: ["error": "\(error)"])
                pause = min(pause * 2, 30_000)
            }
            try await environment.sleep(nanoseconds: pause * 1_000_000)
        }
    }

    private func takeOver() async throws -> DeadLetterStore.Turn {
        let turn = try await letters.takeTurn(longest: longestAppend)
        if turn.rest > .zero {
            logger.info(
                "Records of the dead-letter topic are in flight. The gateway waits for them.", metadata: ["time": "\(turn.rest)"])
            // Letters of the previous turn that are still in flight would be missing from the end of the topic.
            try await environment.sleep(nanoseconds: UInt64(turn.rest / .nanoseconds(1)))
        }
        try await letters.markPublished(try await lastTold())
        return turn
    }

    /// Returns the ids of the last letters in the topic, at most one batch.
    ///
    /// - Throws: `timeout` if the end cannot be read within `patience`.
    private func lastTold() async throws -> [Int64] {
        let partition = LogPartition(topic, 0)
        let range = try await log.ranges(of: [partition])[partition] ?? 0..<0
        guard !range.isEmpty else { return [] }
        return try await log.withReader { reader in
            try await reader.assign([partition: max(range.lowerBound, range.upperBound - Int64(Self.batch))])
            var ids: [Int64] = []
            var fetch = LogFetch()
            let end = environment.monotonicNanoseconds() + Self.patience
            var next = range.lowerBound
            while next < range.upperBound {
                guard environment.monotonicNanoseconds() < end else {
                    throw SluiceError(.timeout, "The end of \(topic) could not be read within \(Self.patience / 1_000_000_000) s.")
                }
                fetch = try await reader.next(fetch, milliseconds: 1_000)
                for entry in fetch.entries {
                    if let id = try? JSON.parse(Array(fetch.arena[entry.value]))["id"]?.int { ids.append(id) }
                    next = entry.offset + 1
                }
            }
            return ids
        }
    }

    /// - Returns: `false` if another gateway has taken the turn.
    private func relay(_ turn: DeadLetterStore.Turn) async throws -> Bool {
        while !Task.isCancelled {
            let rows = try await letters.unpublished(
                limit: Self.batch, characters: Limits.deadLetterBytes, bytes: Self.batchBytes)
            if rows.isEmpty { break }
            // The database records the latest arrival of this append before the append starts. A successor waits that long.
            guard try await letters.begin(turn, for: longestAppend) else { return false }
            try await tell(rows)
            try await letters.markPublished(rows.map(\.id))
            try await letters.end(turn)
        }
        return true
    }

    private func tell(_ rows: [DeadLetter]) async throws {
        do {
            try await tell(rows, within: Limits.deadLetterBytes)
        } catch let error as SluiceError where error.code == .logRecordTooLarge {
            // The brokers' limit is smaller than ours. Letters of the batch that they have accepted must not be sent twice.
            let there = Set(try await lastTold())
            for row in rows where !there.contains(row.id) { try await tellCut(row) }
        }
    }

    /// Publishes a letter, halving its size until the brokers accept it.
    ///
    /// - Throws: `logRecordTooLarge` if they reject it near `leastBytes`.
    private func tellCut(_ row: DeadLetter) async throws {
        var most = Limits.deadLetterBytes
        while true {
            do {
                return try await tell([row], within: most)
            } catch let error as SluiceError where error.code == .logRecordTooLarge && most > Self.leastBytes {
                most /= 2
            }
        }
    }

    private func tell(_ rows: [DeadLetter], within most: Int) async throws {
        var batch = LogBatch(topics: [topic])
        for row in rows {
            let key = row.type.unicodeScalars.prefix(DeadLetter.nameCharacters)
            batch.append(topic: 0, partition: 0, key: String(key).utf8, value: row.told(within: most).utf8)
        }
        _ = try await log.append(batch)
    }
}

/// Sends rejected objects again.
///
/// An object that the log accepts leaves `sluice.ingest_rejected`, once the dead-letter topic has it. Without Kafka it leaves once its
/// table has accepted it. An object that the sink rejects again returns as a new row. After a crash an object may be sent twice; its
/// primary key makes it take effect once.
struct DeadLetterReplay: Sendable {
    struct Outcome: Sendable {
        var sent = 0
        /// The objects that the intake or the schema rejects. They stay in the table.
        var refused: [(letter: DeadLetter, error: SluiceError)] = []
        /// The id of the last letter read; nil if there was none.
        var last: Int64?
    }

    let letters: DeadLetterStore
    let intake: any IngestIntake
    let authority: any SchemaAuthority
    /// `true` if there is a dead-letter topic, which receives every letter before the letter leaves the table.
    let hasTopic: Bool

    /// Replays the oldest letters that match the filter.
    ///
    /// - Parameter limit: The maximum number of letters to read.
    func replay(_ filter: DeadLetterStore.Filter, limit: Int) async throws -> Outcome {
        var rows = try await letters.list(filter, limit: limit)
        var outcome = Outcome()
        outcome.last = rows.last?.id
        if filter.code == nil, filter.ids == nil { outcome.refused = Self.takeForbidden(&rows) }
        let schema = authority.current().schema
        for (name, rows) in Dictionary(grouping: rows, by: \.type).sorted(by: { $0.key < $1.key }) {
            guard let type = schema[name], type.kind == .asymmetric else {
                let error = SluiceError(.ingestUnknownType, "No asymmetric class is named \(name).")
                outcome.refused += rows.map { ($0, error) }
                continue
            }
            try await send(rows, of: type, schema, &outcome)
        }
        return outcome
    }

    /// Removes the letters that the rules rejected. They are replayed only if the filter names their ids or their code.
    private static func takeForbidden(_ rows: inout [DeadLetter]) -> [(letter: DeadLetter, error: SluiceError)] {
        let code = ErrorCode.writeNotAllowed
        let forbidden = rows.filter { $0.code == code.rawValue }
        rows.removeAll { $0.code == code.rawValue }
        return forbidden.map { letter in
            let message = "The rules denied the insertion by \(letter.source). Replay it by its id or its code."
            return (letter, SluiceError(code, message))
        }
    }

    private func send(_ rows: [DeadLetter], of type: ObjectType, _ schema: Schema, _ outcome: inout Outcome) async throws {
        // Marked first: a second rejection then becomes a row of its own instead of a duplicate of this one.
        try await letters.replay(rows.map(\.id))
        let results = try await intake.submit(rows.map { $0.bytes ?? Array($0.object.utf8) }, type: type, schema: schema, rights: nil)
        var sent: [DeadLetter] = []
        for (row, result) in zip(rows, results) {
            switch result {
            case .success: sent.append(row)
            case .failure(let error): outcome.refused.append((row, error))
            }
        }
        try await letters.leave(sent.map(\.id), untold: !hasTopic)
        outcome.sent += sent.count
    }
}
