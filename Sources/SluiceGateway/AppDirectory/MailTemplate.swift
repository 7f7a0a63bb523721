import SluiceCore

/// The text of a mail with places for values, such as `{{link}}`.
package struct MailTemplate: Hashable, Sendable {
    /// The values that a mail can have.
    package enum Value: String, CaseIterable, Sendable {
        /// The link that the mail is for.
        case link
        /// The name of the app.
        case app
        /// The recipient's address.
        case email
    }

    /// A place that names no value.
    struct Fault: Hashable, Sendable {
        /// The line, from 1.
        var line: Int
        var name: String
    }

    private enum Piece: Hashable, Sendable {
        case text(String)
        case value(Value)
    }

    private var pieces: [Piece] = []
    /// The places that name no value, in order.
    private(set) var faults: [Fault] = []

    package init(_ text: String) {
        var line = 1
        for (index, part) in text.split(separator: "{{", omittingEmptySubsequences: false).enumerated() {
            var rest = part
            if index > 0 {
                let first = part.prefix { !$0.isNewline }
                let end = first.firstRange(of: "}}")
                let name = end.map { first[..<$0.lowerBound] } ?? first
                if let value = Value(rawValue: name.filter { $0 != " " }), let end {
                    pieces.append(.value(value))
                    rest = part[end.upperBound...]
                } else {
                    faults.append(Fault(line: line, name: String(name)))
                }
            }
            pieces.append(.text(String(rest)))
            line += part.count { $0.isNewline }
        }
    }

    var hasLink: Bool { pieces.contains(.value(.link)) }

    /// Returns the text with these values. A missing one is empty.
    package func text(_ values: [Value: String]) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .value(let value): values[value] ?? ""
            }
        }
        .joined()
    }

    static let confirmation = MailTemplate(
        """
        The e-mail address {{email}} was used to register for {{app}}.

        Confirm it within 30 minutes:

        {{link}}

        If it was not you, ignore this mail. Then no account is made.

        """)

    static let reset = MailTemplate(
        """
        A new password was requested for {{email}} at {{app}}.

        Set it within 30 minutes:

        {{link}}

        If it was not you, ignore this mail. Then the password stays the same.

        """)
}

/// Reads the templates of an app directory.
struct MailTemplateReader {
    static let folder = "mail"
    static let names = ["confirm.txt", "reset.txt"]

    let files: [String: String]
    let list: ProblemList

    /// Returns a template of the folder; the default if there is none.
    func read(_ name: String, default standard: MailTemplate) -> MailTemplate {
        let file = "\(Self.folder)/\(name)"
        guard let text = files[file] else { return standard }
        guard text.utf8.count <= Limits.mailTemplateBytes else {
            list.add(
                .configInvalid, file: file, "The template has \(text.utf8.count) bytes, over the limit of \(Limits.mailTemplateBytes).")
            return standard
        }
        let template = MailTemplate(text)
        let values = MailTemplate.Value.allCases.map(\.rawValue)
        for fault in template.faults {
            let near = Suggestion.nearest(to: fault.name, in: values)
            list.add(
                .configUnknownKey, file: file, line: fault.line, column: 1, "A mail has no value '\(String(fault.name.prefix(64)))'.",
                fix: near.map { "Did you mean '{{\($0)}}'?" } ?? "Known are \(values.map { "{{\($0)}}" }.joined(separator: ", ")).")
        }
        if template.faults.isEmpty, !template.hasLink {
            list.add(.configMissing, file: file, line: 1, column: 1, "The template has no {{link}}.", fix: "Add it, on a line of its own.")
        }
        return template
    }
}
