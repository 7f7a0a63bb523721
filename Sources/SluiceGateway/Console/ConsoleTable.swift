/// A table of a page. It scrolls horizontally in a narrow window.
struct ConsoleTable {
    private let caption: HTML
    private let heads: [HTML]
    private var rows: HTML = ""

    init(_ caption: HTML, _ heads: [HTML]) {
        self.caption = caption
        self.heads = heads
    }

    /// - Parameter name: The cell that heads the row.
    mutating func add(_ name: HTML, _ cells: [HTML]) {
        rows += "<tr><th scope=\"row\">\(name)</th>\(cells.map { cell -> HTML in "<td>\(cell)</td>" })</tr>\n"
    }

    var html: HTML {
        """
        <div class="wide"><table><caption>\(caption)</caption>
        <thead><tr>\(heads.map { head -> HTML in "<th scope=\"col\">\(head)</th>" })</tr></thead>
        <tbody>
        \(rows)</tbody></table></div>

        """
    }
}

/// Numbers and times for people. The page's source also has the exact number. An unknown value is NaN.
enum ConsoleNumber {
    static func count(_ number: Double) -> HTML {
        guard let whole = Int64(exactly: number) else { return data(number, "\(number)") }
        return data(number, "\(whole)")
    }

    static func bytes(_ number: Double) -> HTML {
        guard number.isFinite, number >= 0 else { return data(number, "not known") }
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var (size, unit) = (number, 0)
        while size >= 1_024, unit < units.count - 1 { (size, unit) = (size / 1_024, unit + 1) }
        return data(number, unit == 0 ? "\(Int64(size.rounded())) B" : "\(tenths(size)) \(units[unit])")
    }

    static func percent(_ ratio: Double) -> HTML { data(ratio, ratio.isFinite ? "\(tenths(ratio * 100)) %" : "not known") }

    static func seconds(_ number: Double) -> HTML {
        data(number, number < 60 ? "\(tenths(number)) s" : duration(number))
    }

    /// Returns whole units, such as `42 s`, `3 min`, `5 h`, `12 d`.
    static func duration(_ seconds: Double) -> String {
        switch seconds {
        case let time where !time.isFinite: "not known"
        case ..<60: "\(Int64(max(seconds, 0))) s"
        case ..<3_600: "\(Int64(seconds / 60)) min"
        case ..<172_800: "\(Int64(seconds / 3_600)) h"
        default: "\(Int64(min(seconds / 86_400, 1e9))) d"
        }
    }

    private static func tenths(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }

    private static func data(_ number: Double, _ shown: String) -> HTML {
        let exact = Int64(exactly: number).map { "\($0)" } ?? "\(number)"
        return "<data value=\"\(exact)\">\(shown)</data>"
    }
}

extension String {
    /// Returns at most this many characters, with an ellipsis if the text was cut.
    func cut(to characters: Int) -> String { count > characters ? "\(prefix(characters))…" : self }
}
