import SluiceCore
import SluiceGateway
import Testing

@Suite struct `Tokens of the admin port` {
    private static let secret = String(repeating: "s", count: 40)

    private static func error(_ text: String) -> SluiceError? {
        do throws(SluiceError) {
            _ = try AdminTokens.parse(text, of: "tokens")
            return nil
        } catch { return error }
    }

    @Test func `are read from lines with role and name, as text or as hash, or as one text`() throws {
        let made = try AdminToken.make(name: "prometheus", role: .read)
        let tokens = try AdminTokens.parse("# of operators\n\nchange ops \(Self.secret)\n\(made.line)\n", of: "tokens").all
        #expect(tokens.map(\.name) == ["ops", "prometheus"] && tokens.map(\.role) == [.change, .read])
        #expect(tokens.map(\.secret) == [Self.secret, nil])
        #expect(tokens[1].hash == made.hash && made.hash.count == 32)
        let alone = try AdminTokens.parse(" \(Self.secret) \r\n", of: "tokens").all
        #expect(alone.map(\.name) == ["admin"] && alone.map(\.role) == [.change] && alone[0].hash == tokens[0].hash)
    }

    @Test func `are made at random, and their line does not hold them`() throws {
        let made = try (0..<100).map { _ in try AdminToken.make(name: "ops", role: .change) }
        let secrets = made.compactMap(\.secret)
        #expect(Set(secrets).count == 100 && secrets.allSatisfy { Limits.adminTokenCharacters.contains($0.utf8.count) })
        for token in made { #expect(!token.line.contains(token.secret ?? "?")) }
        #expect(throws: SluiceError.self) { try AdminToken.make(name: "a b", role: .read) }
    }

    @Test(arguments: [
        "", "# nothing", "short", "change ops short", "all ops \(secret)", "change o/ps \(secret)", "change \(secret)",
        "change ops \(secret) more", "change ops sha256:00", "change ops sha256:\(String(repeating: "g", count: 64))",
        "change ops \(secret)\nread ops \(secret)x",
    ])
    func `are refused with the line, and without the token, when they cannot be used`(text: String) {
        let error = Self.error(text)
        #expect(error?.code == .configInvalid && error?.message.hasPrefix("tokens") == true)
        #expect(error?.description.contains(Self.secret) == false && error?.description.contains("short") == false)
    }

    @Test func `open the console for a bounded time, and for a bounded number of browsers`() {
        let environment = StillEnvironment()
        let sessions = ConsoleSessions(environment: environment)
        let ops = AdminIdentity(name: "token ops", role: .change)
        let first = sessions.begin(ops)
        #expect(sessions.identity(first) == ops && sessions.identity("") == nil && sessions.identity(first + "0") == nil)
        environment.advance(seconds: Limits.consoleSessionSeconds - 1)
        #expect(sessions.identity(first) == ops)
        let second = sessions.begin(ops)
        environment.advance(seconds: 1)
        #expect(sessions.identity(first) == nil && sessions.identity(second) == ops)
        sessions.end(second)
        #expect(sessions.identity(second) == nil)
        let many = (0...Limits.consoleSessions).map { _ in sessions.begin(ops) }
        #expect(sessions.identity(many[0]) == nil && many.dropFirst().allSatisfy { sessions.identity($0) == ops })
    }
}
