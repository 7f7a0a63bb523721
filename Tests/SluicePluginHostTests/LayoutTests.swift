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
            (MemoryLayout<Plugin>.offset(of: \.check_write_rows), 120), (MemoryLayout<Plugin>.offset(of: \.ingest_rows), 128),
        ]
        for (offset, documented) in members { #expect(offset == documented) }
        #expect(MemoryLayout<Plugin>.size == 136)
    }

    @Test func `has its small types as they were`() {
        #expect(MemoryLayout<sluice_text>.size == 16 && MemoryLayout<sluice_text>.offset(of: \.data) == 0)
        #expect(MemoryLayout<sluice_text>.offset(of: \.length) == 8)
        #expect(MemoryLayout<sluice_sink>.size == 16 && MemoryLayout<sluice_sink>.offset(of: \.context) == 0)
        #expect(MemoryLayout<sluice_sink>.offset(of: \.write) == 8)
        #expect(MemoryLayout<sluice_status>.size == 4 && MemoryLayout<sluice_log_level>.size == 4)
        #expect([SLUICE_OK, SLUICE_DENY, SLUICE_FAILED].map(\.rawValue) == [0, 1, 2])
        #expect([SLUICE_LOG_DEBUG, SLUICE_LOG_INFO, SLUICE_LOG_WARNING, SLUICE_LOG_ERROR].map(\.rawValue) == [0, 1, 2, 3])
    }

    @Test func `has rows as they were`() {
        typealias Writes = sluice_writes
        typealias Write = sluice_write
        typealias Row = sluice_row
        typealias Cell = sluice_cell
        let members: [(Int?, Int)] = [
            (MemoryLayout<Writes>.offset(of: \.write_count), 12), (MemoryLayout<Writes>.offset(of: \.type_count), 16),
            (MemoryLayout<Writes>.offset(of: \.user_id), 24), (MemoryLayout<Writes>.offset(of: \.user_type), 40),
            (MemoryLayout<Writes>.offset(of: \.user), 56), (MemoryLayout<Writes>.offset(of: \.types), 72),
            (MemoryLayout<Writes>.offset(of: \.writes), 80), (MemoryLayout<Writes>.offset(of: \.arena), 88),
            (MemoryLayout<Writes>.offset(of: \.arena_length), 96), (MemoryLayout<sluice_type>.offset(of: \.columns), 16),
            (MemoryLayout<sluice_type>.offset(of: \.column_count), 24), (MemoryLayout<sluice_type>.offset(of: \.primary_key), 28),
            (MemoryLayout<Write>.offset(of: \.operation), 8), (MemoryLayout<Write>.offset(of: \.before), 16),
            (MemoryLayout<Write>.offset(of: \.after), 40), (MemoryLayout<Row>.offset(of: \.arena), 8),
            (MemoryLayout<Row>.offset(of: \.count), 16), (MemoryLayout<Cell>.offset(of: \.length), 4),
            (MemoryLayout<Cell>.offset(of: \.bits), 8),
        ]
        for (offset, documented) in members { #expect(offset == documented) }
        #expect(MemoryLayout<Writes>.size == 104 && MemoryLayout<sluice_type>.size == 32 && MemoryLayout<Write>.size == 64)
        #expect(MemoryLayout<Row>.size == 24 && MemoryLayout<Cell>.size == 16)
        // A cell's tag is part of what is built once.
        let tags = [
            SLUICE_TAG_ABSENT, SLUICE_TAG_NULL, SLUICE_TAG_BOOL, SLUICE_TAG_INT, SLUICE_TAG_FLOAT, SLUICE_TAG_DOUBLE, SLUICE_TAG_DECIMAL,
            SLUICE_TAG_STRING, SLUICE_TAG_BINARY, SLUICE_TAG_DATE, SLUICE_TAG_OBJECT_ID, SLUICE_TAG_UUID, SLUICE_TAG_LIST,
            SLUICE_TAG_DICTIONARY, SLUICE_TAG_LINK,
        ]
        #expect(tags.map(\.rawValue) == Array(0..<15))
    }
}
