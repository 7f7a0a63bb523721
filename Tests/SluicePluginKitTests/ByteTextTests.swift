import SluicePluginKit
import Testing

@Suite struct `A text of bytes` {
    @Test func `equals a text of the same bytes, not of the same letters`() {
        let (composed, decomposed): (ByteText, ByteText) = ("\u{E9}", "e\u{301}")
        #expect(composed != decomposed && composed.text == decomposed.text)
        #expect(Set([composed, decomposed, "\u{E9}"]).count == 2)
        #expect("\(composed)" == "é" && composed == ByteText("\u{E9}"))
    }
}
