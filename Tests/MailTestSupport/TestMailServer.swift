import Foundation
import TestSupport

/// An SMTP server of one test: aiosmtpd, which `dev/setup` installs. It ends with the tests.
package final class TestMailServer: Sendable {
    /// A mail that the server has accepted.
    package struct Received: Decodable, Hashable, Sendable {
        package var from: String
        package var to: [String]
        package var authenticated: Bool
        package var tls: Bool
        package var headers: [String: String]
        package var text: String
        /// The HTML; nil for a mail of text alone.
        package var html: String?
        /// The content types of the mail and its parts, in order.
        package var parts: [String]
        /// The faults that Python's parser has found.
        package var defects: [String]
    }

    package struct Options: Sendable {
        package var credentials: (user: String, password: String)?
        /// `true` for a server with `TestCertificate`, by STARTTLS unless `isImplicit`.
        package var hasTLS = false
        package var isImplicit = false
        /// The number of mails to `later@` that the server defers first.
        package var later = 0
        /// The number of connections that the server refuses first, with its greeting.
        package var closed = 0

        package init() {}
    }

    package struct Failure: Error { var what: String }

    private struct State {
        var rest = Data()
        var port: Int?
        var mails: [Received] = []
        var hasEnded = false

        /// Takes what the server has printed: its port, then a mail a line.
        mutating func take(_ data: Data) {
            rest += data
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = rest[..<end]
                rest = Data(rest[rest.index(after: end)...])
                if port == nil {
                    port = Int(String(decoding: line, as: UTF8.self))
                } else if let mail = try? JSONDecoder().decode(Received.self, from: line) {
                    mails.append(mail)
                }
            }
        }
    }

    package let port: Int
    /// The file with the certificate, which signs itself.
    package var certificate: String { folder.appendingPathComponent("certificate.pem").path }

    private let process: Process
    private let input = Pipe()
    private let folder: URL
    private let state: Watched<State>

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

    /// Runs a server for as long as the body runs.
    package static func with<R>(_ options: Options = Options(), _ body: (TestMailServer) async throws -> R) async throws -> R {
        let server = try await TestMailServer(options)
        defer { server.end() }
        return try await body(server)
    }

    private init(_ options: Options) async throws {
        let (state, process, output) = (Watched(State()), Process(), Pipe())
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("mail-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        process.executableURL = Self.root.appendingPathComponent(".sluice/python/bin/python")
        let script = Self.root.appendingPathComponent("Tests/MailTestSupport/mail_server.py").path
        process.arguments = [script] + (try Self.arguments(options, folder))
        process.environment = ProcessInfo.processInfo.environment.merging(["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
        process.standardInput = input
        process.standardOutput = output
        process.terminationHandler = { _ in state.change { $0.hasEnded = true } }
        try process.run()
        let reading = output.fileHandleForReading
        // Reading blocks, so it has a thread. It ends with the server, whose output then has an end.
        Thread.detachNewThread {
            while case let data = reading.availableData, !data.isEmpty { state.change { $0.take(data) } }
        }
        await state.until { $0.port != nil || $0.hasEnded }
        guard let port = state.value.port else { throw Failure(what: "The mail server did not start. Run dev/setup.") }
        (self.port, self.process, self.state) = (port, process, state)
    }

    private func end() {
        // The server ends with its input.
        try? input.fileHandleForWriting.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The mails that have come, in order.
    package var mails: [Received] { state.value.mails }

    /// Waits until so many mails have come.
    ///
    /// - Throws: `Failure` if they do not come in time.
    package func mails(_ count: Int) async throws -> [Received] {
        guard await state.until({ $0.mails.count >= count }) else { throw Failure(what: "\(mails.count) of \(count) mails came.") }
        return mails
    }

    private static func arguments(_ options: Options, _ folder: URL) throws -> [String] {
        var arguments = ["--later", "\(options.later)", "--closed", "\(options.closed)"]
        if let (user, password) = options.credentials { arguments += ["--user", user, "--password", password] }
        guard options.hasTLS else { return arguments }
        for (name, text) in [("certificate", TestCertificate.certificate), ("key", TestCertificate.key)] {
            let file = folder.appendingPathComponent("\(name).pem")
            try Data(text.utf8).write(to: file)
            arguments += ["--\(name)", file.path]
        }
        return arguments + (options.isImplicit ? ["--implicit"] : [])
    }
}
