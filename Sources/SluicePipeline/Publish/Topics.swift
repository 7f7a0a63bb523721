package import SluiceCore

/// The names of an app's topics.
package struct Topics: Hashable, Sendable {
    /// The class whose topic would be that of users' events.
    package static let usersClass = "users"
    /// The class whose topic would be that of the app's progress.
    private static let progressClass = "progress"

    package let app: String
    /// The topic of events of users: `<app>.users`, or `<app>.user-events` if a class has that topic. nil if none are published.
    package private(set) var userEvents: String?

    package var progress: String { "\(app).progress" }
    /// The topic of rejected asymmetric objects. No class can have this name, because class names have no hyphen.
    package var deadLetters: String { "\(app).ingest-rejected" }

    /// - Parameter schema: The classes at the start of a gateway, which decide on the topic of users' events.
    package init(app: String, schema: Schema = Schema([])) {
        self.app = app
        let isTaken = schema[Self.usersClass]?.kind == .topLevel
        // No class can have the other name, because class names have no hyphen.
        userEvents = isTaken ? "\(app).user-events" : changes(of: Self.usersClass)
    }

    /// The same names without a topic of users' events, for an app without Kafka.
    package var withoutEvents: Topics {
        var topics = self
        topics.userEvents = nil
        return topics
    }

    /// Returns the class whose topic has the events of users; nil if there is none. It can only be a class that a live change adds.
    package func classOfEvents(in types: [ObjectType]) -> ObjectType? {
        types.first { $0.kind == .topLevel && changes(of: $0.name) == userEvents }
    }

    /// Returns the topic of a class: `<app>.<Type>`, or `<app>.progress-changes` for a class `progress`.
    package func changes(of type: String) -> String { type == Self.progressClass ? "\(app).progress-changes" : "\(app).\(type)" }
    package func ingest(of type: String) -> String { "\(app).ingest.\(type)" }
}
