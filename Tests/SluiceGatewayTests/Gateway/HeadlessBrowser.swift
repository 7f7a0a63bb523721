import Foundation
import SluiceCore
import SluiceValues
import TestSupport

/// Chromium without a window, as its DevTools protocol drives it over a pipe. Scripts of pages are disabled. It ends with the body.
final class HeadlessBrowser: Sendable {
    struct Failure: Error, CustomStringConvertible { var description: String }

    /// A node of the accessibility tree, as screen readers have it.
    struct Node: Sendable {
        var role: String
        var name: String
        /// The element, for commands.
        var id: Int64
    }

    /// The response that a page came in.
    struct Document: Sendable {
        var request: String
        var url: String
        var status: Int
    }

    private struct State {
        var rest: [UInt8] = []
        var calls: Int64 = 0
        var answers: [Int64: JSON] = [:]
        var documents: [Document] = []
        var loads = 0
        var hasEnded = false

        /// Takes messages, each of which ends with a zero byte.
        mutating func take(_ data: Data) {
            rest += data
            while let end = rest.firstIndex(of: 0) {
                let message = try? JSON.parse(Array(rest[..<end]))
                rest.removeSubrange(...end)
                if let message { take(message) }
            }
        }

        private mutating func take(_ message: JSON) {
            if let id = message["id"]?.int { answers[id] = message }
            switch message["method"]?.string {
            case "Page.loadEventFired": loads += 1
            case "Network.responseReceived" where message["params"]?["type"] == "Document":
                let (request, response) = (message["params"]?["requestId"]?.string, message["params"]?["response"])
                guard let request, let url = response?["url"]?.string, let status = response?["status"]?.int else { return }
                documents.append(Document(request: request, url: url, status: Int(status)))
            default: break
            }
        }
    }

    /// The program; nil if none is on PATH.
    static let program: String? = {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        return folders.map { "\($0)/chromium" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("browser-\(UUID().uuidString)")
    private let state = Watched(State())
    /// The page's session; empty before there is one.
    private let session = Watched("")

    /// Runs a browser with one page for as long as the body runs.
    static func with<R>(_ body: (HeadlessBrowser) async throws -> R) async throws -> R {
        let browser = HeadlessBrowser()
        do {
            try await browser.start()
            let result = try await body(browser)
            await browser.end()
            return result
        } catch {
            await browser.end()
            throw error
        }
    }

    private func start() async throws {
        guard let program = Self.program else { throw Failure(description: "There is no chromium on PATH.") }
        // It reads commands from descriptor 3 and writes to 4, which Foundation cannot give to a child.
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", #"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, program] + arguments
        process.standardInput = input
        process.standardOutput = output
        process.terminationHandler = { [state] _ in state.change { $0.hasEnded = true } }
        // A browser that has ended closes the pipe; the write then fails instead of ending the tests.
        signal(SIGPIPE, SIG_IGN)
        try process.run()
        let reading = output.fileHandleForReading
        // Reading blocks, so it has a thread. It ends with the browser, whose output then has an end.
        Thread.detachNewThread { [state] in
            while case let data = reading.availableData, !data.isEmpty { state.change { $0.take(data) } }
        }
        let target = try await call("Target.createTarget", ["url": "about:blank"])
        let attached = try await call("Target.attachToTarget", ["targetId": target["targetId"] ?? .null, "flatten": true])
        guard let id = attached["sessionId"]?.string else { throw Failure(description: "The page has no session: \(attached.text)") }
        session.change { $0 = id }
        for domain in ["Page", "Network", "DOM", "Accessibility"] { try await call("\(domain).enable") }
        try await call("Emulation.setScriptExecutionDisabled", ["value": true])
    }

    private var arguments: [String] {
        [
            "--headless", "--remote-debugging-pipe", "--user-data-dir=\(folder.path)", "--no-first-run", "--disable-gpu",
            "--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad",
            "--disable-dev-shm-usage", "about:blank",
        ] + (getuid() == 0 ? ["--no-sandbox"] : [])
    }

    /// Ends the process, by force if it does not end in time.
    private func end() async {
        if process.isRunning {
            process.terminate()
            if await !state.until(within: .seconds(20), { $0.hasEnded }) { kill(process.processIdentifier, SIGKILL) }
        }
        try? FileManager.default.removeItem(at: folder)
    }

    /// Sends a command, and returns its result.
    @discardableResult private func call(_ method: String, _ parameters: JSON = .object([])) async throws -> JSON {
        let id = state.change { state in
            state.calls += 1
            return state.calls
        }
        var members = [JSON.Member("id", .int(id)), JSON.Member("method", .string(method)), JSON.Member("params", parameters)]
        if !session.value.isEmpty { members.append(JSON.Member("sessionId", .string(session.value))) }
        try input.fileHandleForWriting.write(contentsOf: Data(JSON.object(members).utf8 + [0]))
        await state.until(within: .seconds(60)) { $0.answers[id] != nil || $0.hasEnded }
        guard let answer = state.change({ $0.answers.removeValue(forKey: id) }), let result = answer["result"] else {
            throw Failure(description: "\(method) failed, the browser \(state.value.hasEnded ? "has ended" : "runs").")
        }
        return result
    }

    // MARK: Pages

    /// Runs what leads to another page, and waits until that has loaded.
    ///
    /// - Returns: The response with the page, and its source as the server sent it.
    private func loading(_ body: () async throws -> Void) async throws -> (Document, source: String) {
        let before = state.value.loads
        try await body()
        guard await state.until(within: .seconds(60), { $0.loads > before || $0.hasEnded }), let document = state.value.documents.last
        else {
            throw Failure(description: "No page has loaded.")
        }
        let content = try await call("Network.getResponseBody", ["requestId": .string(document.request)])
        guard let text = content["body"]?.string else { throw Failure(description: "The page has no source: \(content.text)") }
        guard content["base64Encoded"]?.bool == true else { return (document, text) }
        return (document, String(decoding: Base64.decode(text) ?? [], as: UTF8.self))
    }

    func open(_ url: URL) async throws -> (Document, source: String) {
        try await loading { try await call("Page.navigate", ["url": .string(url.absoluteString)]) }
    }

    /// Presses a button, by its name.
    func press(_ button: String) async throws -> (Document, source: String) {
        let id = try await node("button", button).id
        try await call("DOM.scrollIntoViewIfNeeded", ["backendNodeId": .int(id)])
        let box = try await call("DOM.getBoxModel", ["backendNodeId": .int(id)])
        let corners = (box["model"]?["content"]?.array ?? []).map(Self.number)
        guard corners.count == 8 else { throw Failure(description: "The button '\(button)' is not visible.") }
        let (x, y) = ((corners[0] + corners[4]) / 2, (corners[1] + corners[5]) / 2)
        return try await loading {
            for type in ["mousePressed", "mouseReleased"] {
                let event: JSON = ["type": .string(type), "x": .double(x), "y": .double(y), "button": "left", "clickCount": 1]
                try await call("Input.dispatchMouseEvent", event)
            }
        }
    }

    private static func number(_ json: JSON) -> Double {
        switch json {
        case .int(let number): Double(number)
        case .double(let number): number
        default: 0
        }
    }

    /// Writes a text into an input, by its name.
    func fill(_ input: String, _ text: String) async throws {
        try await call("DOM.focus", ["backendNodeId": .int(try await node("textbox", input).id)])
        try await call("Input.insertText", ["text": .string(text)])
    }

    private func node(_ role: String, _ name: String) async throws -> Node {
        let nodes = try await nodes()
        guard let node = nodes.first(where: { $0.role == role && $0.name == name }) else {
            throw Failure(description: "There is no \(role) '\(name)' among \(nodes.map { "\($0.role) '\($0.name)'" }).")
        }
        return node
    }

    /// Returns the accessibility tree of the page.
    func nodes() async throws -> [Node] {
        let tree = try await call("Accessibility.getFullAXTree")
        return (tree["nodes"]?.array ?? []).compactMap { node in
            guard node["ignored"]?.bool != true, let role = node["role"]?["value"]?.string else { return nil }
            return Node(role: role, name: node["name"]?["value"]?.string ?? "", id: node["backendDOMNodeId"]?.int ?? 0)
        }
    }
}
