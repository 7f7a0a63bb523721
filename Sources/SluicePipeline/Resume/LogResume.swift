package import Logging
package import SluiceCore
package import SluicePorts

/// Returns the log's changes to reconnecting sessions, so that they read nothing from the tables.
///
/// The feed's memory is asked first, which needs no wait for the log. Otherwise one reader serves one client at a time, and at most
/// `most` clients wait. Further clients get a difference bootstrap, which costs the database instead. Memory is bounded by
/// `LogTailReader`'s limits for one client.
package actor LogResume {
    /// The maximum number of waiting clients.
    static let most = 64

    private let log: any MessageLog
    private let feed: Feed
    private let environment: any Environment
    private let logger: Logger
    private let turns = AsyncSerialQueue()
    private var waiting = 0
    /// The time of the log's last failure, in monotonic nanoseconds.
    private var failed: UInt64?
    private var reader: (any LogReader)?

    package init(log: any MessageLog, feed: Feed, environment: any Environment, logger: Logger) {
        self.log = log
        self.feed = feed
        self.environment = environment
        self.logger = logger
    }

    /// Returns the changes of a view after a position.
    /// - Returns: nil if the log does not reach back that far, cannot be read, or is too busy.
    func tail(of view: View, after lsn: LSN, client: ClientID, schema: Schema) async throws -> LogTail? {
        let promised = await feed.promised(of: view.partitions)
        let tailReader = LogTailReader(view: view, schema: schema, client: client, after: lsn, promised: promised)
        if let recent = await feed.recent(view.partitions, after: lsn), let tail = tailReader.read(recent) {
            logger.debug("A client resumes from records in memory.")
            return tail
        }
        guard waiting < Self.most else { return nil }
        waiting += 1
        defer { waiting -= 1 }
        let asked = environment.monotonicNanoseconds()
        return try await turns.run { try await self.read(tailReader, asked: asked) }
    }

    /// Reads from the log. Runs only inside `turns`.
    private func read(_ tailReader: LogTailReader, asked: UInt64) async throws -> LogTail? {
        // The log has failed since the request: every queued client would wait for its own deadline.
        if let failed, failed > asked { return nil }
        do {
            let reader = try await open()
            let tail = try await tailReader.read(log, reader, environment)
            try await reader.unassign(tailReader.view.partitions)
            return tail
        } catch {
            failed = environment.monotonicNanoseconds()
            logger.warning("The log could not be read for a resuming client.", metadata: ["error": "\(error)"])
            // A reader after a failure may have leftover assignments, so the next client opens another.
            await close()
            return nil
        }
    }

    private func open() async throws -> any LogReader {
        if let reader { return reader }
        let made = try await log.makeReader()
        reader = made
        return made
    }

    /// Closes the reader; the next client opens another.
    package func close() async {
        let open = reader.take()
        await open?.close()
    }
}
