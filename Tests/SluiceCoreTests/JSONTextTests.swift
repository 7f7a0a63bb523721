import SluiceCore
import SluiceValues
import Testing

@Suite struct `Texts in JSON` {
    @Test func `are equal by bytes, as values and as keys`() {
        #expect(JSON.string("K") != JSON.string("\u{212A}"))
        #expect(JSON.object([.init("\u{212A}", 1)])["K"] == nil)
        #expect(JSON.object([.init("K", ["\u{E9}"])]) != JSON.object([.init("K", ["e\u{301}"])]))
        #expect(JSON.object([.init("K", ["\u{E9}"])]) == JSON.object([.init("K", ["\u{E9}"])]))
    }
}
