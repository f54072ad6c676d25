"""What operators are told, over the services on each storage."""

from services.conftest import begin as begin
