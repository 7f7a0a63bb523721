import Foundation
import GatewayTestSupport
import SluiceCore
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A page as a browser that forgives nothing reads it.
struct PageOfConsole {
    struct Flaw: Error, CustomStringConvertible { var description: String }

    private enum Token {
        case open(String, [String: String])
        case close(String)
        case text(String)
    }

    let source: String
    private let tokens: [Token]

    /// - Throws: the first thing that is not well formed.
    init(_ source: String) throws {
        self.source = source
        tokens = try Self.tokens(of: source)
        try Self.check(tokens)
    }

    // MARK: What it says

    /// The texts of the cells of the first row that begins with a text.
    func row(_ name: String) -> [String]? { rows.first { $0.first == name } }

    var rows: [[String]] {
        var rows: [[String]] = []
        var cell: String?
        for token in tokens {
            switch token {
            case .open("tr", _): rows.append([])
            case .open("td", _), .open("th", _): cell = ""
            case .text(let text): cell?.append(text)
            case .close("td"), .close("th"):
                if let cell { rows[rows.count - 1].append(cell) }
                cell = nil
            default: break
            }
        }
        return rows
    }

    /// The exact number in the row that begins with a text.
    func number(_ name: String) -> Double? {
        var cells = 0
        var head = ""
        for token in tokens {
            switch token {
            case .open("tr", _): (cells, head) = (0, "")
            case .open("td", _), .open("th", _): cells += 1
            case .open("data", let attributes) where head == name: return attributes["value"].flatMap { Double($0) }
            case .text(let text) where cells == 1: head += text
            default: break
            }
        }
        return nil
    }

    /// All text between the tags of the section, or other element, that has the id or is labelled by it.
    func text(_ id: String) -> String {
        var depth = 0
        var said = ""
        for token in tokens {
            switch token {
            case .open(let name, let attributes):
                if depth > 0, !Self.void.contains(name) { depth += 1 }
                if depth == 0, attributes["aria-labelledby"] == id || attributes["id"] == id { depth = 1 }
            case .close: depth = max(depth - 1, 0)
            case .text(let text) where depth > 0: said += text
            case .text: break
            }
        }
        return said
    }

    /// All text in the first element of a name; empty without one.
    func text(of name: String) -> String {
        let start = tokens.firstIndex { if case .open(name, _) = $0 { true } else { false } }
        let inside = start.map { tokens[$0...].prefix { if case .close(name) = $0 { false } else { true } } } ?? []
        return inside.reduce(into: "") { if case .text(let text) = $1 { $0 += text } }
    }

    /// The visible inputs, each with the text of the label around it.
    var inputs: [(name: String, label: String)] {
        var inputs: [(name: String, label: String)] = []
        var label = ""
        for token in tokens {
            switch token {
            case .open("label", _), .close("label"): label = ""
            case .text(let text): label += text
            case .open("input", let attributes) where attributes["type"] != "hidden":
                inputs.append((attributes["name"] ?? "", label.trimmingCharacters(in: .whitespaces)))
            default: break
            }
        }
        return inputs
    }

    /// The names of all attributes.
    var attributes: Set<String> {
        tokens.reduce(into: []) { if case .open(_, let attributes) = $1 { $0.formUnion(attributes.keys) } }
    }

    /// The attributes of every element of a name.
    func elements(_ name: String) -> [[String: String]] {
        tokens.compactMap { token in
            guard case .open(name, let attributes) = token else { return nil }
            return attributes
        }
    }

    // MARK: Whether it is well formed

    private static let void: Set<String> = ["meta", "input"]
    private static let known: Set<String> = [
        "html", "head", "title", "style", "body", "header", "nav", "h1", "h2", "p", "strong", "code", "a", "div", "section", "table",
        "caption", "main",
        "thead", "tbody", "tr", "th", "td", "span", "data", "time", "form", "label", "button", "pre",
    ]

    private static func check(_ tokens: [Token]) throws {
        var open: [String] = []
        var ids: Set<String> = []
        var references: Set<String> = []
        for token in tokens {
            switch token {
            case .open(let name, let attributes):
                guard known.contains(name) || void.contains(name) else { throw Flaw(description: "<\(name)> is no element of the console") }
                for (key, value) in attributes where key == "id" {
                    guard ids.insert(value).inserted else { throw Flaw(description: "two elements have the id \(value)") }
                }
                if let label = attributes["aria-labelledby"] { references.insert(label) }
                if name == "th", attributes["scope"] == nil { throw Flaw(description: "a <th> has no scope") }
                if !void.contains(name) { open.append(name) }
            case .close(let name):
                guard open.popLast() == name else { throw Flaw(description: "</\(name)> closes what is not open") }
            case .text: break
            }
        }
        guard open.isEmpty else { throw Flaw(description: "\(open) are never closed") }
        guard references.isSubset(of: ids) else { throw Flaw(description: "\(references.subtracting(ids)) are no ids") }
    }

    private static func tokens(of source: String) throws -> [Token] {
        let head = "<!DOCTYPE html>\n"
        guard source.hasPrefix(head) else { throw Flaw(description: "there is no doctype") }
        var rest = source.dropFirst(head.count)
        var tokens: [Token] = []
        while let sign = rest.first {
            if sign == "<" {
                guard let match = rest.prefixMatch(of: /<(\/?)([a-z][a-z0-9]*)((?: [a-z-]+(?:="[^"<>]*")?)*)>/) else {
                    throw Flaw(description: "this is no tag: \(rest.prefix(80))")
                }
                let name = String(match.2)
                let pairs = try match.3.matches(of: /([a-z-]+)(?:="([^"]*)")?/).map { (String($0.1), try plain($0.2 ?? "")) }
                tokens.append(match.1.isEmpty ? .open(name, Dictionary(pairs) { first, _ in first }) : .close(name))
                rest = rest[match.range.upperBound...]
            } else {
                let text = rest.prefix { $0 != "<" }
                tokens.append(.text(try plain(text)))
                rest = rest[text.endIndex...]
            }
        }
        return tokens
    }

    /// The text that is meant, without references.
    private static func plain(_ text: Substring) throws -> String {
        guard !text.contains(">") else { throw Flaw(description: "a > stands by itself: \(text)") }
        guard text.matches(of: /&(?!(?:amp|lt|gt|quot|#39);)/).isEmpty else { throw Flaw(description: "an & stands by itself: \(text)") }
        return String(text).replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
            .replacing("&#39;", with: "'").replacing("&amp;", with: "&")
    }
}

extension RunningGateway {
    struct ConsoleAnswer {
        var status: Int
        var headers: [String: String]
        var path: String
        var page: PageOfConsole
    }

    /// A page of the console; it has to be well formed whatever it says.
    func console(_ path: String = "/console", _ asked: [(String, String)] = []) async throws -> ConsoleAnswer {
        // As a form sends it.
        let query = asked.map {
            "\($0)=\(($1.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "").replacing("%20", with: "+"))"
        }
        let address = adminURL + path + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
        var request = URLRequest(url: try #require(URL(string: address)))
        request.timeoutInterval = 60
        let (data, response) = try await URLSession.shared.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        let fields = http.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
        return ConsoleAnswer(
            status: http.statusCode, headers: Dictionary(fields) { $1 }, path: http.url?.path ?? "",
            page: try PageOfConsole(String(decoding: data, as: UTF8.self)))
    }
}
