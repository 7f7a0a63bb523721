import SluiceCore

/// The names of an app's topics (DESIGN section 3).
package struct Topics: Hashable, Sendable {
    package var app: String
    package var progress: String { "\(app).progress" }
    /// Asymmetric objects that were refused; no class has a hyphen in its name.
    package var deadLetters: String { "\(app).ingest-rejected" }

    package init(app: String) { self.app = app }

    package func changes(of type: String) -> String { "\(app).\(type)" }
    package func ingest(of type: String) -> String { "\(app).ingest.\(type)" }
}
