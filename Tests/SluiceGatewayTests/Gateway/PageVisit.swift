import Foundation
import SluiceValues
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The ways to visit the pages behind the links of mails. Each gives the same pages.
enum PageVisit: String, CaseIterable, Sendable {
    /// By plain HTTP, with forms as a browser sends them.
    case http
    /// By Chromium, without scripts.
    case chromium

    /// The ways that this machine has.
    static var available: [PageVisit] { HeadlessBrowser.program == nil ? [.http] : allCases }

    func with(_ body: (any PageVisitor) async throws -> Void) async throws {
        switch self {
        case .http: try await body(PlainVisitor())
        case .chromium: try await HeadlessBrowser.with { try await body(ChromiumVisitor(browser: $0)) }
        }
    }
}

/// A page with the status of its response.
struct VisitedPage: Sendable {
    var status: Int
    var page: PageOfConsole

    /// Checks what a reader with a screen reader, or without scripts, needs.
    func checkAccessibility(sourceLocation: SourceLocation = #_sourceLocation) {
        let title = page.text(of: "title")
        #expect(page.elements("html").first?["lang"] == "en", sourceLocation: sourceLocation)
        #expect(!title.isEmpty && page.text(of: "h1") == title && page.elements("h1").count == 1, sourceLocation: sourceLocation)
        #expect(page.elements("main").count == 1 && page.elements("script").isEmpty, sourceLocation: sourceLocation)
        #expect(page.inputs.allSatisfy { !$0.label.isEmpty }, "\(page.inputs)", sourceLocation: sourceLocation)
        let handlers = page.attributes.filter { $0.hasPrefix("on") }
        #expect(handlers.isEmpty, "\(handlers) are scripts", sourceLocation: sourceLocation)
    }
}

/// A visitor of pages, on one of them at a time.
protocol PageVisitor: Sendable {
    func open(_ url: URL) async throws -> VisitedPage
    /// Fills in inputs by their labels, and presses a button by its text.
    func submit(_ button: String, _ texts: [String: String]) async throws -> VisitedPage
}

/// A visitor by Chromium. It finds inputs and buttons in the accessibility tree, by the names that screen readers read out.
private struct ChromiumVisitor: PageVisitor {
    let browser: HeadlessBrowser

    func open(_ url: URL) async throws -> VisitedPage { try await visited(try await browser.open(url)) }

    func submit(_ button: String, _ texts: [String: String]) async throws -> VisitedPage {
        for (input, text) in texts { try await browser.fill(input, text) }
        return try await visited(try await browser.press(button))
    }

    private func visited(_ loaded: (document: HeadlessBrowser.Document, source: String)) async throws -> VisitedPage {
        let page = try PageOfConsole(loaded.source)
        let nodes = try await browser.nodes()
        #expect(nodes.first { $0.role == "RootWebArea" }?.name == page.text(of: "title"))
        let controls = nodes.filter { ["textbox", "button"].contains($0.role) }
        #expect(controls.allSatisfy { !$0.name.isEmpty } && controls.count { $0.role == "textbox" } == page.inputs.count)
        return VisitedPage(status: loaded.document.status, page: page)
    }
}

/// A visitor by plain HTTP.
private actor PlainVisitor: PageVisitor {
    private var current: (url: URL, page: PageOfConsole)?

    func open(_ url: URL) async throws -> VisitedPage { try await visit(URLRequest(url: url)) }

    func submit(_ button: String, _ texts: [String: String]) async throws -> VisitedPage {
        let (url, page) = try #require(current)
        try #require(page.text(of: "button") == button)
        let form = try #require(page.elements("form").first)
        var fields = page.elements("input").filter { $0["type"] == "hidden" }.map { ($0["name"] ?? "", $0["value"] ?? "") }
        for (label, text) in texts {
            let input = try #require(page.inputs.first { $0.label == label }, "no input '\(label)' among \(page.inputs)")
            fields.append((input.name, text))
        }
        var request = URLRequest(url: try #require(form["action"].flatMap { URL(string: $0, relativeTo: url) }))
        request.httpMethod = form["method"]?.uppercased()
        request.httpBody = Data(fields.map { "\(Self.encoded($0))=\(Self.encoded($1))" }.joined(separator: "&").utf8)
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        // As browsers send it from a page without a referrer.
        request.setValue("null", forHTTPHeaderField: "Origin")
        return try await visit(request)
    }

    private func visit(_ request: URLRequest) async throws -> VisitedPage {
        let (data, response) = try await URLSession.shared.data(for: request)
        let page = try PageOfConsole(String(decoding: data, as: UTF8.self))
        current = (try #require(request.url), page)
        return VisitedPage(status: (response as? HTTPURLResponse)?.statusCode ?? 0, page: page)
    }

    private static func encoded(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
}
