import SluiceCore

/// The names of an app's topics.
package struct Topics: Hashable, Sendable {
    package var app: String
    package var progress: String { "\(app).progress" }
    /// The topic of rejected asymmetric objects. No class can have this name, because class names have no hyphen.
    package var deadLetters: String { "\(app).ingest-rejected" }

    /// The topic of events of users. A class could be named `users`.
    package var userEvents: String { "\(app).user-events" }

    package init(app: String) { self.app = app }

    package func changes(of type: String) -> String { "\(app).\(type)" }
    package func ingest(of type: String) -> String { "\(app).ingest.\(type)" }
}
