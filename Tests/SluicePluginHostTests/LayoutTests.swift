import CSluicePlugin
import Foundation
import Testing

@Suite struct `The table of the interface` {
    /// As docs/plugin-abi.md has it: a plugin that is built once is loaded for years.
    @Test func `has every member where it was`() {
        typealias Host = sluice_host
        typealias Plugin = sluice_plugin
        #expect(
            MemoryLayout<Host>.size == 56 && MemoryLayout<Host>.offset(of: \.context) == 16 && MemoryLayout<Host>.offset(of: \.log) == 24)
        #expect(
            MemoryLayout<Host>.offset(of: \.count) == 32 && MemoryLayout<Host>.offset(of: \.custom_data) == 40
                && MemoryLayout<Host>.offset(of: \.parse_predicate) == 48)
        let members: [(Int?, Int)] = [
            (MemoryLayout<Plugin>.offset(of: \.state), 16), (MemoryLayout<Plugin>.offset(of: \.name), 24),
            (MemoryLayout<Plugin>.offset(of: \.version), 40), (MemoryLayout<Plugin>.offset(of: \.configure), 56),
            (MemoryLayout<Plugin>.offset(of: \.open_session), 64), (MemoryLayout<Plugin>.offset(of: \.check_subscription), 72),
            (MemoryLayout<Plugin>.offset(of: \.check_write), 80), (MemoryLayout<Plugin>.offset(of: \.ingest), 88),
            (MemoryLayout<Plugin>.offset(of: \.user_changed), 96), (MemoryLayout<Plugin>.offset(of: \.config_schema), 104),
        ]
        for (offset, documented) in members { #expect(offset == documented) }
        #expect(MemoryLayout<Plugin>.size == 120)
    }
}
