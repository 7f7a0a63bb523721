import Testing

@testable import SluiceGateway

@Suite struct `A piece of a page` {
    @Test func `escapes whatever is put into it, in text and in attributes`() {
        let evil = #"<script>alert("1")</script> & 'x'"#
        let piece: HTML = "<p title=\"\(evil)\">\(evil)</p>"
        let escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;"
        #expect(piece.text == "<p title=\"\(escaped)\">\(escaped)</p>")
        let part = evil.prefix(8)
        #expect(("<b>\(part)</b>" as HTML).text == "<b>&lt;script&gt;</b>")
    }

    @Test func `takes pieces as they are, and escapes none of them twice`() {
        let inner: HTML = "<b>\("a & b")</b>"
        let outer: HTML = "<p>\(inner)\([inner, "<br>"])\(-5)</p>"
        #expect(outer.text == "<p><b>a &amp; b</b><b>a &amp; b</b><br>-5</p>")
    }

    @Test func `has no text that was made before as markup`() {
        let text = "<i>\(1)</i>"
        #expect(("\(text)" as HTML).text == "&lt;i&gt;1&lt;/i&gt;")
    }

    @Test(arguments: ["\u{0}", "\u{8}", "\r", "\u{1B}", "\u{7F}", "\u{85}", "\u{200F}", "\u{202E}", "\u{2066}"])
    func `shows that there was a character that a page may not have`(character: String) {
        #expect(HTML.escape("a\(character)b") == "a\u{FFFD}b")
    }

    @Test func `keeps letters, lines and signs of every script`() {
        let text = "Grüße\n\t日本 👩‍👩‍👧 العربية {x} `y` =z"
        #expect(HTML.escape(text) == text)
    }
}

@Suite struct `The check of pages` {
    private static func page(_ body: String) -> String { "<!DOCTYPE html>\n<html><body>\(body)</body></html>" }

    @Test func `takes a page, and tells what it says`() throws {
        let page = try PageOfConsole(
            Self.page(#"<p id="a">x &amp; y</p><table><tr><th scope="row">N</th><td><data value="7">7 B</data></td></tr></table>"#))
        #expect(page.text("a") == "x & y" && page.row("N") == ["N", "7 B"] && page.number("N") == 7)
    }

    @Test(arguments: [
        "<p>", "</p>", "<p><b></p></b>", "<script></script>", "a > b", "a & b", "<p id=x></p>", "<p id=\"x\"></p><p id=\"x\"></p>",
        "<th>x</th>", "<section aria-labelledby=\"no\"></section>", "<p title=\"<\"></p>", "< p>", "<p onclick>x",
    ])
    func `finds out what is wrong`(body: String) {
        #expect(throws: PageOfConsole.Flaw.self) { try PageOfConsole(Self.page(body)) }
    }
}

struct ConsoleNumberTests {
    @Test func `what is not known is said, and ends nothing`() {
        for number in [Double.nan, .infinity, -.infinity] {
            #expect(ConsoleNumber.bytes(number).text.contains(">not known<") && ConsoleNumber.percent(number).text.contains(">not known<"))
            #expect(ConsoleNumber.duration(number) == "not known" && !ConsoleNumber.count(number).text.isEmpty)
        }
        #expect(ConsoleNumber.seconds(.nan).text.contains(">not known<"))
        #expect(ConsoleNumber.duration(.greatestFiniteMagnitude) == "1000000000 d" && ConsoleNumber.duration(-1) == "0 s")
    }

    @Test func `figures are in the largest unit that they fill`() {
        #expect(ConsoleNumber.bytes(1_023).text.contains(">1023 B<") && ConsoleNumber.bytes(1_536).text.contains(">1.5 KiB<"))
        #expect([59, 60, 7_200, 172_800].map { ConsoleNumber.duration($0) } == ["59 s", "1 min", "2 h", "2 d"])
    }
}
