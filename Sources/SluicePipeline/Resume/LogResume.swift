package import Logging
package import SluiceCore

/// Tells sessions that come back what the log has since they went, so that nothing is read from the tables for them.
///
/// What the feed still has in memory is asked first: then nobody waits for the log either. From the log one client at a time is
/// served, by one reader, and few wait: whoever comes then has a difference bootstrap, which costs the database instead. Memory is what
/// `LogTailReader` holds for one client.
package actor LogResume {
    /// How many wait at most.
    static let most = 64

    private let log: any MessageLog
    private let feed: Feed
    private let environment: any Environment
    private let logger: Logger
    private let turns = OneAfterAnother()
    private var waiting = 0
    /// When the log last failed.
    private var failed: UInt64?
    private var reader: (any LogReader)?

    package init(log: any MessageLog, feed: Feed, environment: any Environment, logger: Logger) {
        self.log = log
        self.feed = feed
        self.environment = environment
        self.logger = logger
    }

    /// - Returns: nil when the log does not say, or is too busy.
    func tail(of view: View, after lsn: LSN, client: ClientID, schema: Schema) async throws -> LogTail? {
        let promised = await feed.promised(of: view.partitions)
        let tailReader = LogTailReader(view: view, schema: schema, client: client, after: lsn, promised: promised)
        if let recent = await feed.recent(view.partitions, after: lsn), let tail = tailReader.read(recent) {
            logger.debug("A client that came back is told what it lacks from memory.")
            return tail
        }
        guard waiting < Self.most else { return nil }
        waiting += 1
        defer { waiting -= 1 }
        let asked = environment.monotonicNanoseconds()
        return try await turns.run { try await self.read(tailReader, asked: asked) }
    }

    /// Only as one of `turns`.
    private func read(_ tailReader: LogTailReader, asked: UInt64) async throws -> LogTail? {
        // It would take its deadline from each who waits.
        if let failed, failed > asked { return nil }
        do {
            let reader = try await open()
            let tail = try await tailReader.read(log, reader, environment)
            try await reader.unassign(tailReader.view.partitions)
            return tail
        } catch {
            failed = environment.monotonicNanoseconds()
            logger.warning("The log could not be read for a client that came back.", metadata: ["error": "\(error)"])
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

    /// Gives the reader back; the next client makes another.
    package func close() async {
        let open = reader.take()
        await open?.close()
    }
}
