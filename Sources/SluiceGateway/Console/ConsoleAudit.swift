import SluiceCore
import SluicePostgres
import SluiceValues

/// The page of the audit log: the newest changes by operators.
struct ConsoleAudit: Sendable {
    static let shown = 50

    private let entries: PartReader<[AuditEntry]>

    init(_ audit: AuditLog, environment: any Environment) {
        entries = PartReader("The audit log", patience: Console.patience, environment: environment) {
            try await audit.list(limit: Self.shown)
        }
    }

    func page() async -> ConsolePage {
        let content: HTML
        switch await entries.read() {
        case .failure(let error): content = ConsoleError.paragraph(error)
        case .success(let entries) where entries.isEmpty: content = "<p>None.</p>\n"
        case .success(let entries):
            var table = ConsoleTable(
                "The newest, of sluice.admin_audit", ["Id", "When", "Actor", "Address", "Action", "Subject", "Before", "After"])
            for entry in entries {
                table.add(
                    "\(entry.id)",
                    [
                        "<time>\(entry.at)</time>", "\(entry.author.actor)", "\(entry.author.address)", Self.long(entry.author.action),
                        Self.long(entry.subject), Self.value(entry.before), Self.value(entry.after),
                    ])
            }
            content = table.html
        }
        let body: HTML = """
            <h1>Changes by operators</h1>
            <nav><p><a href="/console">Back to the console</a></p></nav>
            \(ConsolePage.section("audit", "Audit log", content))
            """
        return ConsolePage(title: "Changes – Sluice", body: body)
    }

    private static func long(_ text: String) -> HTML { "<span class=\"long\">\(text.cut(to: Console.characters))</span>" }
    private static func value(_ json: JSON) -> HTML { json == .null ? "–" : "<code>\(long(json.text))</code>" }
}
