import SluiceCore

/// The texts of a kind of mail.
package struct MailTemplates: Hashable, Sendable {
    package var text: MailTemplate
    /// The same mail as HTML; nil to send the text alone.
    package var html: MailTemplate?

    package init(text: MailTemplate, html: MailTemplate? = nil) {
        self.text = text
        self.html = html
    }
}

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
    package func text(_ values: [Value: String]) -> String { filled { values[$0] ?? "" } }

    /// Returns the HTML with these values, escaped for content and attributes.
    package func html(_ values: [Value: String]) -> String { filled { HTML.escape(values[$0] ?? "") } }

    private func filled(_ text: (Value) -> String) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let part): part
            case .value(let value): text(value)
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
    /// The files of the folder: a text and its HTML for each kind of mail.
    static let names = Kind.allCases.flatMap { ["\($0.rawValue).txt", "\($0.rawValue).html"] }

    enum Kind: String, CaseIterable {
        case confirm, reset
    }

    let files: [String: String]
    let list: ProblemList

    /// Returns the templates of the folder. The text is the default one if there is none.
    func read(_ kind: Kind, default standard: MailTemplate) -> MailTemplates {
        MailTemplates(text: read("\(kind.rawValue).txt") ?? standard, html: read("\(kind.rawValue).html"))
    }

    /// - Returns: nil without the file, or with one that is too large.
    private func read(_ name: String) -> MailTemplate? {
        let file = "\(Self.folder)/\(name)"
        guard let text = files[file] else { return nil }
        guard text.utf8.count <= Limits.mailTemplateBytes else {
            list.add(
                .configInvalid, file: file, "The template has \(text.utf8.count) bytes, over the limit of \(Limits.mailTemplateBytes).")
            return nil
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
            list.add(.configMissing, file: file, line: 1, column: 1, "The template has no {{link}}.", fix: Self.linkFix(name))
        }
        return template
    }

    private static func linkFix(_ name: String) -> String {
        name.hasSuffix(".html") ? #"Add it, such as <a href="{{link}}">{{link}}</a>."# : "Add it, on a line of its own."
    }
}
