import Foundation
import SluiceSDK
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// The one hook that hears of misuse before it ends the program.
@Suite struct MisuseHookTests {
    @Test func `the hook hears the words, and the program ends with them`() async {
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RealmMisuse.onException { FileHandle.standardError.write(Data("heard: \($0)\n".utf8)) }
            _ = List<Int>()[0]
        }
        let text = "Index 0 is out of bounds (must be less than 0)."
        #expect(message(end).contains("heard: \(text)\n") && message(end).contains("Fatal error: \(text)"))
    }

    @Test func `a hook may end the program in its own way`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            RealmMisuse.onException { _ in exit(7) }
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            try realm.commitWrite()
        }
    }

    @Test func `a hook that was taken back hears nothing`() async {
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RealmMisuse.onException { FileHandle.standardError.write(Data("heard: \($0)\n".utf8)) }
            RealmMisuse.onException(nil)
            _ = List<Int>()[0]
        }
        #expect(!message(end).contains("heard"))
    }
}
