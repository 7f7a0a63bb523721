import SluiceCore
import SluicePipeline

/// The newest sessions of both protocols, with their clients.
enum ConsoleSessionList {
    /// The sessions to show, with the connections of each protocol.
    struct Content: Sendable {
        var newest: [ListedSession]
        var sluice: Int
        var realm: Int
        /// The time of the reading, in monotonic nanoseconds.
        var now: UInt64
    }

    private static let heads: [HTML] = ["Device", "Protocol", "SDK", "App", "Client file", "User", "Subscriptions", "Connected for"]

    static func html(_ answer: Result<Content, SluiceError>) -> HTML {
        switch answer {
        case .failure(let error): return ConsolePage.section("sessions", "Sessions", ConsoleError.paragraph(error))
        case .success(let content):
            let counts: HTML =
                "<p>Connections of Sluice's protocol: \(content.sluice). Of Realm's protocol: \(content.realm).</p>\n"
            guard !content.newest.isEmpty else { return ConsolePage.section("sessions", "Sessions", counts) }
            var table = ConsoleTable("The newest sessions on this gateway", heads)
            for session in content.newest { table.add("\(session.summary.client.rawValue)", cells(session, now: content.now)) }
            return ConsolePage.section("sessions", "Sessions", "\(counts)\(table.html)")
        }
    }

    private static func cells(_ session: ListedSession, now: UInt64) -> [HTML] {
        let (client, summary) = (session.client, session.summary)
        return [
            "\(client.kind.rawValue)", long(client.program), long(client.app), client.file.map { file -> HTML in "\(file)" } ?? "–",
            long(summary.user), subscriptions(summary.version, queries: summary.queries, isLive: summary.isLive),
            ConsoleNumber.seconds(Double(now - min(session.began, now)) / 1e9),
        ]
    }

    private static func subscriptions(_ version: UInt64, queries: Int, isLive: Bool) -> HTML {
        version == 0 ? "none" : "version \(version), \(queries) quer\(queries == 1 ? "y" : "ies")\(isLive ? "" : ", bootstrapping")"
    }

    private static func long(_ text: String) -> HTML {
        text.isEmpty ? "–" : "<span class=\"long\">\(text.cut(to: Console.characters))</span>"
    }
}
