import SluiceCore
import TestSupport
import Testing

@testable import SluiceQuery

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Texts made to be slow. `make fuzz` holds them to 10 ms for 64 KiB; here, in a debug build beside other tests, they are counted, and
/// their processor time at two sizes is compared.
struct WorstCaseTests {
    private static let fields = QueryableFields(global: Set(Samples.type.properties.map(\.name)))

    /// All that a client's text passes through.
    private func run(_ text: String) {
        guard let query = try? Query.parse(text) else { return }
        _ = query.canonicalText
        guard let predicate = try? Subscription.check(type: Samples.type, query: query, in: Samples.schema, fields: WorstCaseTests.fields)
        else {
            _ = try? query.predicate(on: Samples.type, in: Samples.schema)
            return
        }
        _ = predicate.indexForm(indexedProperty: 10)
    }

    /// Nanoseconds of this thread.
    private func time(_ text: String) -> Double {
        let start = WorstCaseTests.now
        run(text)
        return WorstCaseTests.now - start
    }

    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
    }

    @Test(arguments: WorstCases.texts(bytes: 64).map(\.name))
    func `eight times the text takes about eight times as long`(_ name: String) throws {
        func text(_ bytes: Int) throws -> String { try #require(WorstCases.texts(bytes: bytes).first { $0.name == name }).text }
        let (small, large) = (try text(8_192), try text(65_536))
        #expect(large.utf8.count > 65_000 && large.utf8.count < 68_000)
        // The square of eight is sixty-four; what both take at least is noise. A machine may be busy once, a slow text is slow always.
        var (few, many) = (time(small), time(large))
        for _ in 0..<4 where many > 24 * few + 5e6 { (few, many) = (min(few, time(small)), min(many, time(large))) }
        #expect(many <= 24 * few + 5e6, "\(few / 1e6) ms for 8 KiB, \(many / 1e6) ms for 64 KiB")
    }

    @Test
    func `tokens, printed texts and errors are bounded by the text`() throws {
        for (name, text) in WorstCases.texts(bytes: 65_536) {
            var lexer = Lexer(text)
            if let tokens = try? lexer.tokens() { #expect(tokens.count <= text.utf8.count + 1, "\(name)") }
            do throws(SluiceError) {
                let query = try Query.parse(text)
                #expect(query.canonicalText.utf8.count <= 6 * text.utf8.count, "\(name)")
            } catch { #expect(error.message.utf8.count < 1_000, "\(name)") }
        }
    }

    @Test
    func `an unknown name of any length is refused without looking for near ones too long`() throws {
        for text in ["n\(String(repeating: "a", count: 200_000)) == 1", "n\(String(repeating: "\u{301}\u{316}", count: 60_000)) == 1"] {
            let query = try Query.parse(text)
            let error = #expect(throws: SluiceError.self) { try query.predicate(on: Samples.type, in: Samples.schema) }
            #expect(error?.code == .queryUnknownProperty)
        }
    }
}
