import SluiceCore
import SluicePostgres

/// The tables of rejected objects and quarantined rows.
enum ConsoleLists {
    static func refused(_ answer: Result<Console.Listed<DeadLetter>, SluiceError>) -> HTML {
        var table = ConsoleTable("The newest, of sluice.ingest_rejected", ["Id", "Type", "When", "Code", "Reason", "Source", "Object"])
        return section("refused", "Refused objects", answer) { listed in
            for letter in listed.newest {
                table.add(
                    "\(letter.id)",
                    [
                        "\(letter.type)", time(letter.at), code(letter.code), long(letter.reason), long(letter.source),
                        "<code>\(long(letter.object))</code>",
                    ])
            }
            return table.html
        }
    }

    static func unfit(_ answer: Result<Console.Listed<QuarantinedRow>, SluiceError>) -> HTML {
        var table = ConsoleTable("The newest, of sluice.quarantine", ["Type", "Key", "When", "Reason"])
        return section("unfit", "Rows that do not fit", answer) { listed in
            for row in listed.newest { table.add("\(row.type)", [long(row.key), time(row.at), long(row.reason)]) }
            return table.html
        }
    }

    private static func section<Element>(
        _ id: String, _ title: String, _ answer: Result<Console.Listed<Element>, SluiceError>,
        _ table: (Console.Listed<Element>) -> HTML
    ) -> HTML {
        switch answer {
        case .failure(let error): ConsolePage.section(id, title, ConsoleError.paragraph(error))
        case .success(let listed) where listed.newest.isEmpty: ConsolePage.section(id, title, "<p>None.</p>\n")
        case .success(let listed):
            ConsolePage.section(id, title, "<p>\(ConsoleNumber.count(Double(listed.count))) in all.</p>\n\(table(listed))")
        }
    }

    private static func long(_ text: String) -> HTML { "<span class=\"long\">\(text.cut(to: Console.characters))</span>" }

    private static func time(_ text: String) -> HTML { "<time>\(text)</time>" }

    private static func code(_ number: Int) -> HTML {
        let name = UInt16(exactly: number).flatMap { ErrorCode(rawValue: $0) }?.name
        return "\(number)\(name.map { name -> HTML in " <code>\(name)</code>" } ?? "")"
    }
}
