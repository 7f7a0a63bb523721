import SluiceCore
import SluiceValues

/// The JSON encoding of OTLP's `ExportTraceServiceRequest`. Identities are hexadecimal digits, and 64-bit integers are strings.
enum OTLPMessage {
    static func encode(_ spans: [FinishedSpan], service: String) -> [UInt8] {
        let resource: JSON = ["attributes": [attribute("service.name", .text(service))]]
        let scope: JSON = ["scope": ["name": "sluice"], "spans": .array(spans.map(span))]
        return (["resourceSpans": [["resource": resource, "scopeSpans": [scope]]]] as JSON).utf8
    }

    private static func span(_ span: FinishedSpan) -> JSON {
        var members = [
            JSON.Member("traceId", .string(span.identity.trace.text)), JSON.Member("spanId", .string(span.identity.spanText)),
        ]
        if let parent = span.parent {
            members.append(JSON.Member("parentSpanId", .string(SpanIdentity(trace: span.identity.trace, span: parent).spanText)))
        }
        members += [
            JSON.Member("name", .string(span.name)), JSON.Member("kind", .int(Int64(span.kind.rawValue))),
            JSON.Member("startTimeUnixNano", .string("\(span.time.lowerBound)")),
            JSON.Member("endTimeUnixNano", .string("\(span.time.upperBound)")),
            JSON.Member("attributes", .array(span.attributes.sorted { $0.key < $1.key }.map { attribute($0.key, $0.value) })),
            JSON.Member("droppedAttributesCount", .int(Int64(span.left))), JSON.Member("status", span.isError ? ["code": 2] : .object([])),
        ]
        return .object(members)
    }

    private static func attribute(_ key: String, _ value: FinishedSpan.Attribute) -> JSON {
        let encoded: JSON =
            switch value {
            case .text(let text): ["stringValue": .string(text)]
            case .number(let number): ["intValue": .string("\(number)")]
            case .fraction(let number): ["doubleValue": .double(number)]
            case .flag(let flag): ["boolValue": .bool(flag)]
            }
        return ["key": .string(key), "value": encoded]
    }
}
