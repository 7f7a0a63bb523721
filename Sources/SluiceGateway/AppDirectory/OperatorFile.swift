/// `sluice.json`: the settings that an export does not have, such as URLs, keys and the mail server.
struct OperatorFile {
    static let name = "sluice.json"

    /// The sections of the file by name.
    private let sections: [String: ConfigNode]

    /// - Parameter node: The file; nil for none.
    init(_ node: ConfigNode?) {
        sections = node?.members(allowing: Section.allCases.map(\.rawValue)) ?? [:]
    }

    /// A section of the file. Each has a reader of its own.
    enum Section: String, CaseIterable {
        /// The places of secrets (`SecretReader`).
        case secrets
        /// Additions to `auth/providers.json` (`AuthReader`).
        case providers
        /// The services of functions (`FunctionReader`).
        case functions
        /// The mail server (`MailReader`).
        case mail
        /// The topic of users' events (`EventReader`).
        case events
    }

    subscript(_ section: Section) -> ConfigNode? { sections[section.rawValue] }
}
