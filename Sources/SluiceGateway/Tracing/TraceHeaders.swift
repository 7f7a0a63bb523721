import HTTPTypes
import Tracing

/// Reads the headers of W3C Trace Context from a request.
struct TraceHeaders: Extractor {
    func extract(key: String, from carrier: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { carrier[$0] }
    }
}
